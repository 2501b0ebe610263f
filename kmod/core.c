// SPDX-License-Identifier: GPL-2.0-only
/*
 * The character device of each of rtgauge's modules. It has one user at a time; when the user
 * closes it or dies, the measurement ends. Samples are in one ring per CPU, which the user maps or
 * reads. Writing a sample wakes nobody: read() checks the rings every READ_PAUSE_MS, so the reader
 * adds nothing to the measured path.
 */
#include <linux/err.h>
#include <linux/gpio/machine.h>
#include <linux/kthread.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <uapi/linux/sched/types.h>

#include "compat.h"
#include "core.h"

#define READ_PAUSE_MS 10
#define MAP_BYTES_MAX (1UL << 30)

/*
 * The user can overwrite everything that is mapped, so the kernel keeps its own counts and reads
 * only the tails from there.
 */
struct ring {
	struct rtgauge_ring *shared;
	u64 head;
	u64 lost;
	u64 samples;
};

struct rtgauge_rings {
	void *map;
	size_t size;
	u32 capacity;
	unsigned int count;
	struct ring ring[];
};

static size_t ring_stride(u32 capacity)
{
	return PAGE_ALIGN(sizeof(struct rtgauge_ring) + capacity * sizeof(struct rtgauge_sample));
}

static size_t map_size(u32 capacity)
{
	return PAGE_SIZE + nr_cpu_ids * ring_stride(capacity);
}

static struct rtgauge_rings *rings_make(u32 capacity)
{
	struct rtgauge_rings *rings = kzalloc(struct_size(rings, ring, nr_cpu_ids), GFP_KERNEL);
	struct rtgauge_map *map;
	unsigned int cpu;

	if (!rings)
		return NULL;
	rings->size = map_size(capacity);
	rings->capacity = capacity;
	rings->count = nr_cpu_ids;
	rings->map = vmalloc_user(rings->size);
	if (!rings->map) {
		kfree(rings);
		return NULL;
	}
	map = rings->map;
	*map = (struct rtgauge_map){
		.magic = RTGAUGE_MAP_MAGIC,
		.abi = RTGAUGE_KMOD_ABI,
		.sample_size = sizeof(struct rtgauge_sample),
		.rings = rings->count,
		.capacity = capacity,
		.first = PAGE_SIZE,
		.stride = ring_stride(capacity),
	};
	for (cpu = 0; cpu < rings->count; cpu++)
		rings->ring[cpu].shared = rings->map + PAGE_SIZE + cpu * ring_stride(capacity);
	return rings;
}

static void rings_empty(struct rtgauge_rings *rings)
{
	unsigned int cpu;

	for (cpu = 0; cpu < rings->count; cpu++) {
		struct ring *ring = &rings->ring[cpu];

		ring->head = 0;
		ring->lost = 0;
		ring->samples = 0;
		WRITE_ONCE(ring->shared->head, 0);
		WRITE_ONCE(ring->shared->tail, 0);
		WRITE_ONCE(ring->shared->lost, 0);
	}
}

static void rings_free(struct rtgauge_rings *rings)
{
	if (!rings)
		return;
	vfree(rings->map);
	kfree(rings);
}

/* Called with the device's lock held. */
static int rings_want(struct rtgauge_device *device)
{
	struct rtgauge_rings *rings;

	if (device->rings)
		return 0;
	rings = rings_make(device->capacity);
	if (!rings)
		return -ENOMEM;
	/* Pairs with the acquire in device_read(), which does not hold the lock. */
	smp_store_release(&device->rings, rings);
	return 0;
}

void rtgauge_keep(struct rtgauge_device *device, struct rtgauge_sample *sample)
{
	struct rtgauge_rings *rings = device->rings;
	struct rtgauge_ring *shared;
	struct ring *ring;
	unsigned long flags = rtgauge_irqs_off();
	u64 tail;

	sample->cpu = raw_smp_processor_id();
	ring = &rings->ring[sample->cpu];
	shared = ring->shared;
	ring->samples++;
	/* An impossible tail, beyond the head or too far behind it, counts as a full ring. */
	tail = smp_load_acquire(&shared->tail);
	if (ring->head - tail >= rings->capacity) {
		ring->lost++;
		WRITE_ONCE(shared->lost, ring->lost);
	} else {
		u64 head = ring->head;

		shared->samples[head & (rings->capacity - 1)] = *sample;
		/* The sample is written before either head moves. */
		smp_store_release(&ring->head, head + 1);
		smp_store_release(&shared->head, head + 1);
	}
	rtgauge_irqs_back(flags);
}
EXPORT_SYMBOL_GPL(rtgauge_keep);

void rtgauge_end(struct rtgauge_device *device, enum rtgauge_reason reason)
{
	if (!rtgauge_running(device))
		return;
	WRITE_ONCE(device->reason, reason);
	/* Callable from any context, because it takes no lock. */
	WRITE_ONCE(device->end_ns, ktime_get_mono_fast_ns());
	/* Anyone who sees the end sees all samples. */
	smp_store_release(&device->state, RTGAUGE_STATE_ENDED);
}
EXPORT_SYMBOL_GPL(rtgauge_end);

static struct rtgauge_device *device_of(struct file *file)
{
	return container_of(file->private_data, struct rtgauge_device, misc);
}

/* Called with the device's lock held. */
static void stop_locked(struct rtgauge_device *device)
{
	if (!device->started)
		return;
	rtgauge_end(device, RTGAUGE_REASON_STOPPED);
	device->ops->stop(device);
	device->started = false;
	device->thread = 0;
}

static int device_open(struct inode *inode, struct file *file)
{
	struct rtgauge_device *device = device_of(file);

	if (test_and_set_bit(0, &device->opened))
		return -EBUSY;
	device->capacity = RTGAUGE_CAPACITY_DEFAULT;
	device->state = RTGAUGE_STATE_IDLE;
	device->reason = RTGAUGE_REASON_NONE;
	device->missed = 0;
	device->start_ns = 0;
	device->end_ns = 0;
	device->irq = 0;
	device->thread = 0;
	return nonseekable_open(inode, file);
}

static int device_release(struct inode *inode, struct file *file)
{
	struct rtgauge_device *device = device_of(file);
	struct rtgauge_rings *rings;

	mutex_lock(&device->lock);
	stop_locked(device);
	rings = device->rings;
	device->rings = NULL;
	mutex_unlock(&device->lock);
	rings_free(rings);
	clear_bit_unlock(0, &device->opened);
	return 0;
}

/* Copies samples of one ring to the user. Returns the number of bytes, or an error. */
static ssize_t read_ring(struct rtgauge_rings *rings, struct ring *ring, char __user *buffer,
			 size_t room)
{
	struct rtgauge_ring *shared = ring->shared;
	/* Pairs with the release in rtgauge_keep(). The page's own head is not used, because
	 * users can write it. */
	u64 head = smp_load_acquire(&ring->head);
	u64 tail = READ_ONCE(shared->tail);
	size_t done = 0;

	/*
	 * The user can write both. A distance above the capacity is impossible; then a whole
	 * ring of samples is copied, whatever they are.
	 */
	if (head - tail > rings->capacity)
		tail = head - rings->capacity;
	while (tail != head && done + sizeof(struct rtgauge_sample) <= room) {
		u32 first = tail & (rings->capacity - 1);
		u64 count = min3(head - tail, (u64)(rings->capacity - first),
				 (u64)((room - done) / sizeof(struct rtgauge_sample)));

		if (copy_to_user(buffer + done, &shared->samples[first],
				 count * sizeof(struct rtgauge_sample)))
			return -EFAULT;
		done += count * sizeof(struct rtgauge_sample);
		tail += count;
	}
	/* The samples are read before their space is released. */
	smp_store_release(&shared->tail, tail);
	return done;
}

static ssize_t read_rings(struct rtgauge_rings *rings, char __user *buffer, size_t room)
{
	size_t done = 0;
	unsigned int cpu;

	for (cpu = 0; cpu < rings->count; cpu++) {
		ssize_t got = read_ring(rings, &rings->ring[cpu], buffer + done, room - done);

		if (got < 0)
			return done ? done : got;
		done += got;
	}
	return done;
}

static ssize_t device_read(struct file *file, char __user *buffer, size_t room, loff_t *offset)
{
	struct rtgauge_device *device = device_of(file);
	/* The rings stay until the device is closed. */
	struct rtgauge_rings *rings = smp_load_acquire(&device->rings);
	ssize_t got;

	if (room < sizeof(struct rtgauge_sample))
		return -EINVAL;
	if (!rings || READ_ONCE(device->state) == RTGAUGE_STATE_IDLE)
		return -ENODATA;
	if (mutex_lock_interruptible(&device->read_lock))
		return -ERESTARTSYS;
	for (;;) {
		/* Pairs with the release in rtgauge_end(). */
		bool over = smp_load_acquire(&device->state) != RTGAUGE_STATE_RUNNING;

		got = read_rings(rings, buffer, room);
		if (got || over)
			break;
		if (file->f_flags & O_NONBLOCK) {
			got = -EAGAIN;
			break;
		}
		schedule_timeout_interruptible(msecs_to_jiffies(READ_PAUSE_MS));
		if (signal_pending(current)) {
			got = -ERESTARTSYS;
			break;
		}
	}
	mutex_unlock(&device->read_lock);
	return got;
}

static int device_mmap(struct file *file, struct vm_area_struct *area)
{
	struct rtgauge_device *device = device_of(file);
	int error;

	mutex_lock(&device->lock);
	error = rings_want(device);
	mutex_unlock(&device->lock);
	if (error)
		return error;
	if (area->vm_pgoff || area->vm_end - area->vm_start != device->rings->size ||
	    !(area->vm_flags & VM_SHARED))
		return -EINVAL;
	return remap_vmalloc_range(area, device->rings->map, 0);
}

static void info_of(struct rtgauge_device *device, struct rtgauge_info *info)
{
	*info = (struct rtgauge_info){
		.abi = RTGAUGE_KMOD_ABI,
		.sample_size = sizeof(struct rtgauge_sample),
		.rings = nr_cpu_ids,
		.capacity = device->capacity,
		.map_size = map_size(device->capacity),
	};
	strscpy(info->module, device->ops->name, sizeof(info->module));
}

static void status_of(struct rtgauge_device *device, struct rtgauge_status *status)
{
	unsigned int cpu;

	*status = (struct rtgauge_status){
		/* Pairs with the release in rtgauge_end(). */
		.state = smp_load_acquire(&device->state),
		.reason = READ_ONCE(device->reason),
		.missed = READ_ONCE(device->missed),
		.start_ns = READ_ONCE(device->start_ns),
		.end_ns = READ_ONCE(device->end_ns),
		.irq = device->irq,
		.thread = device->thread,
	};
	for (cpu = 0; device->rings && cpu < device->rings->count; cpu++) {
		status->samples += READ_ONCE(device->rings->ring[cpu].samples);
		status->lost += READ_ONCE(device->rings->ring[cpu].lost);
	}
}

static int set_capacity(struct rtgauge_device *device, u32 capacity)
{
	if (device->rings)
		return -EBUSY;
	if (!is_power_of_2(capacity) || capacity < RTGAUGE_CAPACITY_MIN ||
	    capacity > RTGAUGE_CAPACITY_MAX || map_size(capacity) > MAP_BYTES_MAX)
		return rtgauge_refuse(
			device,
			"capacity %u: expected a power of 2 from %u to %u, at most %lu MiB for %u CPUs",
			capacity, RTGAUGE_CAPACITY_MIN, RTGAUGE_CAPACITY_MAX, MAP_BYTES_MAX >> 20,
			nr_cpu_ids);
	device->capacity = capacity;
	return 0;
}

/* Called with the device's lock held. */
static int start_locked(struct rtgauge_device *device, const void *parameters)
{
	int error;

	if (rtgauge_running(device))
		return -EBUSY;
	stop_locked(device);
	error = rings_want(device);
	if (error)
		return error;
	rings_empty(device->rings);
	device->reason = RTGAUGE_REASON_NONE;
	device->missed = 0;
	device->irq = 0;
	device->thread = 0;
	device->end_ns = 0;
	device->start_ns = ktime_get_ns();
	WRITE_ONCE(device->state, RTGAUGE_STATE_RUNNING);
	error = device->ops->start(device, parameters);
	if (error) {
		WRITE_ONCE(device->state, RTGAUGE_STATE_IDLE);
		return error;
	}
	device->started = true;
	return 0;
}

static int start(struct rtgauge_device *device, void __user *argument)
{
	u8 parameters[RTGAUGE_PARAMETERS_MAX] __aligned(8);
	int error;

	if (copy_from_user(parameters, argument, device->ops->parameters_size))
		return -EFAULT;
	mutex_lock(&device->lock);
	error = start_locked(device, parameters);
	mutex_unlock(&device->lock);
	return error;
}

static long device_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct rtgauge_device *device = device_of(file);
	void __user *user = (void __user *)argument;
	struct rtgauge_status status;
	struct rtgauge_info info;
	u32 capacity;
	int error;

	if (command == device->ops->start_command)
		return start(device, user);
	switch (command) {
	case RTGAUGE_IOC_INFO:
		mutex_lock(&device->lock);
		info_of(device, &info);
		mutex_unlock(&device->lock);
		return copy_to_user(user, &info, sizeof(info)) ? -EFAULT : 0;
	case RTGAUGE_IOC_STATUS:
		mutex_lock(&device->lock);
		status_of(device, &status);
		mutex_unlock(&device->lock);
		return copy_to_user(user, &status, sizeof(status)) ? -EFAULT : 0;
	case RTGAUGE_IOC_CAPACITY:
		if (get_user(capacity, (u32 __user *)user))
			return -EFAULT;
		mutex_lock(&device->lock);
		error = set_capacity(device, capacity);
		mutex_unlock(&device->lock);
		return error;
	case RTGAUGE_IOC_STOP:
		mutex_lock(&device->lock);
		stop_locked(device);
		mutex_unlock(&device->lock);
		return 0;
	default:
		return device->ops->command ? device->ops->command(device, command, argument)
					    : -ENOTTY;
	}
}

int rtgauge_register(struct rtgauge_device *device)
{
	if (WARN_ON(device->ops->parameters_size > RTGAUGE_PARAMETERS_MAX))
		return -EINVAL;
	mutex_init(&device->lock);
	mutex_init(&device->read_lock);
	device->file_ops = (struct file_operations){
		.owner = device->ops->owner,
		.open = device_open,
		.release = device_release,
		.read = device_read,
		.mmap = device_mmap,
		.unlocked_ioctl = device_ioctl,
		.compat_ioctl = compat_ptr_ioctl,
	};
	device->misc = (struct miscdevice){
		.minor = MISC_DYNAMIC_MINOR,
		.name = device->ops->name,
		.fops = &device->file_ops,
		.mode = 0600,
	};
	return misc_register(&device->misc);
}
EXPORT_SYMBOL_GPL(rtgauge_register);

void rtgauge_unregister(struct rtgauge_device *device)
{
	misc_deregister(&device->misc);
}
EXPORT_SYMBOL_GPL(rtgauge_unregister);

int rtgauge_check_abi(const struct rtgauge_device *device, u32 abi, const u32 *reserved,
		      size_t count)
{
	if (abi != RTGAUGE_KMOD_ABI)
		return rtgauge_refuse(
			device,
			"ABI %u requested, but this module has ABI %u: rebuild and reload it", abi,
			RTGAUGE_KMOD_ABI);
	if (memchr_inv(reserved, 0, count * sizeof(*reserved)))
		return rtgauge_refuse(device, "reserved words must be 0");
	return 0;
}
EXPORT_SYMBOL_GPL(rtgauge_check_abi);

int rtgauge_check_cpu(const struct rtgauge_device *device, s32 cpu)
{
	if (cpu < 0 || cpu >= nr_cpu_ids || !cpu_online(cpu))
		return rtgauge_refuse(device, "CPU %d is not online", cpu);
	return 0;
}
EXPORT_SYMBOL_GPL(rtgauge_check_cpu);

int rtgauge_check_priority(const struct rtgauge_device *device, u32 priority, bool thread)
{
	if (thread && (priority < 1 || priority > 99))
		return rtgauge_refuse(device, "priority %u is not in the range 1 to 99", priority);
	if (!thread && priority)
		return rtgauge_refuse(device, "priority %u: only a kernel thread has a priority",
				      priority);
	return 0;
}
EXPORT_SYMBOL_GPL(rtgauge_check_priority);

static bool line_is_sane(const struct rtgauge_line *line)
{
	u32 pulls = line->flags & (RTGAUGE_LINE_PULL_UP | RTGAUGE_LINE_PULL_DOWN);

	/* To the kernel, U16_MAX means that the label is the name of a line. */
	return strnlen(line->chip, sizeof(line->chip)) < sizeof(line->chip) &&
	       line->offset < U16_MAX &&
	       !(line->flags &
		 ~(u32)(RTGAUGE_LINE_ACTIVE_LOW | RTGAUGE_LINE_PULL_UP | RTGAUGE_LINE_PULL_DOWN)) &&
	       pulls != (RTGAUGE_LINE_PULL_UP | RTGAUGE_LINE_PULL_DOWN);
}

struct gpio_desc *rtgauge_line_get(struct rtgauge_device *device, const struct rtgauge_line *line,
				   bool output)
{
	unsigned long flags =
		line->flags & RTGAUGE_LINE_ACTIVE_LOW ? GPIO_ACTIVE_LOW : GPIO_ACTIVE_HIGH;
	const char *end = output ? "out" : "in";
	struct gpiod_lookup_table *table;
	struct gpio_desc *descriptor;

	if (!line->chip[0])
		return NULL;
	if (!line_is_sane(line)) {
		rtgauge_refuse(device, "line '%s': invalid label, number or flags", end);
		return ERR_PTR(-EINVAL);
	}
	flags |= line->flags & RTGAUGE_LINE_PULL_UP ? GPIO_PULL_UP : 0;
	flags |= line->flags & RTGAUGE_LINE_PULL_DOWN ? GPIO_PULL_DOWN : 0;
	table = kzalloc(struct_size(table, table, 2), GFP_KERNEL);
	if (!table)
		return ERR_PTR(-ENOMEM);
	table->dev_id = dev_name(device->misc.this_device);
	table->table[0] = GPIO_LOOKUP(line->chip, line->offset, end, flags);
	gpiod_add_lookup_table(table);
	descriptor = gpiod_get(device->misc.this_device, end, output ? GPIOD_OUT_LOW : GPIOD_IN);
	gpiod_remove_lookup_table(table);
	if (IS_ERR(descriptor)) {
		/* The chip does not exist; the kernel expects it to appear later. */
		if (PTR_ERR(descriptor) == -EPROBE_DEFER)
			rtgauge_refuse(device, "there is no GPIO chip '%s'", line->chip);
		else
			rtgauge_refuse(device, "cannot request line %u of chip '%s' as '%s': %pe",
				       line->offset, line->chip, end, descriptor);
		if (PTR_ERR(descriptor) != -EBUSY)
			descriptor = ERR_PTR(-EINVAL);
		kfree(table);
		return descriptor;
	}
	if (gpiod_cansleep(descriptor)) {
		gpiod_put(descriptor);
		rtgauge_refuse(device,
			       "chip '%s' can sleep, so its lines cannot be used in an interrupt",
			       line->chip);
		descriptor = ERR_PTR(-EINVAL);
	} else {
		gpiod_set_consumer_name(descriptor, device->ops->name);
	}
	kfree(table);
	return descriptor;
}
EXPORT_SYMBOL_GPL(rtgauge_line_get);

/* Older kernels, on which Xenomai runs, do not let a module choose a priority. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 1, 0)
struct task_struct *rtgauge_thread(struct rtgauge_device *device, int (*run)(void *), void *data,
				   int cpu, unsigned int priority)
{
	struct sched_attr attributes = {
		.size = sizeof(attributes),
		.sched_policy = SCHED_FIFO,
		.sched_priority = priority,
	};
	struct task_struct *thread = kthread_create_on_cpu(run, data, cpu, "rtgauge-task/%u");
	int error;

	if (IS_ERR(thread))
		return thread;
	error = sched_setattr_nocheck(thread, &attributes);
	if (error) {
		kthread_stop(thread);
		return ERR_PTR(error);
	}
	device->thread = task_pid_nr(thread);
	return thread;
}
EXPORT_SYMBOL_GPL(rtgauge_thread);
#endif

MODULE_LICENSE("GPL");
MODULE_VERSION(RTGAUGE_KMOD_VERSION);
MODULE_AUTHOR("The rtgauge developers");
MODULE_DESCRIPTION("rtgauge: what its measuring modules share");
MODULE_INFO(rtgauge_abi, RTGAUGE_ABI_TEXT);
