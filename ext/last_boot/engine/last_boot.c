// SPDX-License-Identifier: MIT
/*
 * last-boot: reads the kernel's persistent trace ring, which has the events before the machine crashed, hung
 * or was reset, and keeps them on disk. With --arm, the ring then records this boot.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/file.h"
#include "base/boot_id.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/options.h"
#include "base/tracefs.h"
#include "base/verbs.h"
#include "ext/last_boot/engine/boot_ring.h"
#include "trace/addresses.h"
#include "trace/events.h"

#define FOLDER "/var/lib/rtgauge/last-boot"
#define ARMED "armed.json"
#define KEPT ".ndjson"
#define KEPT_MAX 5
#define CMDLINE_MAX (64U << 10)
#define LINE_MAX_LEN (4U << 10)
#define KEPT_BYTES_MAX (64U << 20)
#define PARAMETERS "reserve_mem=20M:32M:trace trace_instance=boot_map@trace"
/* The kernel's own messages, such as its reason for a panic, are events too. */
#define MESSAGES "printk/console"
#define SWITCHES "sched/sched_switch"
#define EVENTS TRACE_USUAL_EVENTS "," MESSAGES

static const char *folder = FOLDER;
static bool arm, disarm;
static int64_t before_ns = 2 * NS_PER_S; /* a panic may take so long to print its messages */

static const struct option_entry table[] = {
	{.name = "folder", .kind = OPTION_TEXT, .value = &folder, .help = "where the last boots are kept"},
	{.name = "before-ns",
	 .kind = OPTION_INT,
	 .value = &before_ns,
	 .min = 1,
	 .max = 60 * NS_PER_S,
	 .help = "how much of the ring to keep before each CPU's last event"},
	{.name = "arm", .kind = OPTION_FLAG, .value = &arm, .help = "let the ring record this boot"},
	{.name = "disarm", .kind = OPTION_FLAG, .value = &disarm, .help = "let the ring record no longer"},
	{0},
};

struct layout {
	char header_page[TRACE_TEXT_MAX], header_event[TRACE_TEXT_MAX];
	size_t page_size, data_offset;
	char *events[TRACE_EVENTS_MAX];
	unsigned int event_count;
};

static struct {
	char name[TRACE_NAME_MAX];
	int root, instance, folder;
	char boot[BOOT_ID_SIZE];
	struct utsname system;
	char *armed; /* the line of the boot that armed the ring; NULL: none did */
} here = {.root = -1, .instance = -1, .folder = -1};

static int lacks_ring(const char *reason)
{
	return error_lacks(STATUS_CANNOT_MEASURE, "lacking", "a persistent trace ring",
			   "boot Linux 6.12 or newer with " PARAMETERS, "%s", reason);
}

/* Returns the text of a file in the folder, malloc'ed; NULL with errno. */
static char *text_of(const char *name, size_t max_len)
{
	int fd = openat(here.folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct bytes bytes = {0};
	int error = fd < 0 ? errno : file_read_fd(fd, max_len, &bytes);

	if (fd >= 0)
		close(fd);
	errno = error;
	return error ? NULL : bytes.data;
}

/* Replaces a file in the folder, so that a crash leaves either the old one or the new one. */
static int write_whole(const char *name, const char *text, size_t len)
{
	int fd = openat(here.folder, ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int error = fd < 0 ? errno : 0;

	for (size_t at = 0; at < len && !error;) {
		ssize_t written = write(fd, text + at, len - at);

		if (written > 0)
			at += (size_t)written;
		else if (errno != EINTR)
			error = errno;
	}
	if (!error && (fsync(fd) || renameat(here.folder, ".new", here.folder, name) || fsync(here.folder)))
		error = errno;
	if (fd >= 0)
		close(fd);
	if (error)
		unlinkat(here.folder, ".new", 0);
	return error;
}

/* Root obeys and shows what is in the folder, so nobody else may write there. */
static int open_folder(void)
{
	char parent[] = FOLDER;
	struct stat st;

	*strrchr(parent, '/') = '\0';
	if (!strcmp(folder, FOLDER))
		mkdir(parent, 0755);
	if (mkdir(folder, 0700) && errno != EEXIST)
		return errno;
	here.folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (here.folder < 0 || fstat(here.folder, &st) || flock(here.folder, LOCK_EX))
		return errno;
	return st.st_uid != geteuid() || st.st_mode & 022 ? EPERM : 0;
}

/* Returns 0, or the exit status after an `error` line. */
static int open_ring(void)
{
	struct bytes cmdline;
	char path[TRACE_NAME_MAX + 16];
	bool named = false;

	if (!file_read("/proc/cmdline", CMDLINE_MAX, &cmdline)) {
		named = boot_ring_named(cmdline.data, here.name);
		free(cmdline.data);
	}
	if (!named)
		return lacks_ring("the kernel was booted without a persistent trace ring");
	here.root = tracefs_open();
	if (here.root < 0)
		return error_line(STATUS_CANNOT_MEASURE, "internal",
				  "cannot open tracefs: %s; run rtgauge as root", errname(errno));
	snprintf(path, sizeof(path), "instances/%s", here.name);
	here.instance = openat(here.root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (here.instance < 0 && errno == ENOENT)
		return lacks_ring("the kernel did not make the ring that its command line names; dmesg says "
				  "why");
	if (here.instance < 0)
		return error_line(STATUS_CANNOT_MEASURE, "internal", "cannot open the trace ring %s: %s",
				  here.name, errname(errno));
	return 0;
}

static bool is_recording(void)
{
	char text[TRACE_TEXT_MAX];

	return trace_read(here.instance, "events/enable", text) && text[0] != '0';
}

/* Returns where the kernel's text was in the boot that armed the ring; 0: unknown. */
static uint64_t armed_text(void)
{
	static const char key[] = "\"stext\":\"";
	const char *at = here.armed ? strstr(here.armed, key) : NULL;

	return at ? strtoull(at + strlen(key), NULL, 16) : 0;
}

static bool armed_now(void)
{
	return here.armed && strstr(here.armed, here.boot);
}

static int read_layout(struct layout *layout)
{
	struct trace_field data;

	if (!trace_read(here.root, "events/header_page", layout->header_page) ||
	    !trace_read(here.root, "events/header_event", layout->header_event))
		return errno;
	if (!trace_find_field(layout->header_page, "data", &data) || data.offset > TRACE_TEXT_MAX ||
	    data.size > (1U << 20) || !trace_entries_known(layout->header_event))
		return EPROTO;
	layout->data_offset = data.offset;
	layout->page_size = data.offset + data.size;
	layout->event_count = trace_events_find(here.instance, EVENTS, layout->events);
	return 0;
}

static void formats_json(const struct layout *layout, size_t cpus, struct addresses *addresses,
			 struct json *j)
{
	char format[TRACE_TEXT_MAX];

	json_open(j, NULL, '{');
	json_str(j, "type", "trace_formats");
	json_str(j, "clock", "mono");
	json_open(j, "events", '{');
	for (unsigned int i = 0; i < layout->event_count; i++) {
		if (!trace_event_format(here.instance, layout->events[i], format))
			continue;
		addresses_add(addresses, format);
		json_str(j, layout->events[i], format);
	}
	json_close(j, '}');
	json_str(j, "header_page", layout->header_page);
	json_str(j, "header_event", layout->header_event);
	json_uint(j, "page_bytes", layout->page_size);
	json_uint(j, "cpus", cpus);
	json_close(j, '}');
	json_line(j);
}

/* The kernel's text has another random address at each boot, unless nokaslr is given. */
static void symbols_of_last_boot(const struct boot_rings *rings, struct addresses *addresses, struct json *j)
{
	uint64_t then = armed_text(), now = symbols_address("_stext"), moved = now - then;
	struct symbols *wanted = calloc(1, sizeof(*wanted)), *found = calloc(1, sizeof(*found));
	FILE *lines = fopen("/proc/kallsyms", "re");

	addresses->text = then;
	for (size_t i = 0; i < rings->count && wanted; i++) {
		for (size_t at = 0; at < rings->rings[i].count; at++) {
			const struct boot_page *page = &rings->rings[i].pages[at];

			if (page->bytes)
				addresses_collect(addresses, page->bytes, page->len, rings->data_offset,
						  wanted);
		}
	}
	for (unsigned int i = 0; wanted && found && i < wanted->count; i++)
		symbols_want(found, wanted->address[i] + moved);
	if (wanted && found && lines && then && now && symbols_read(found, lines)) {
		for (unsigned int i = 0; i < found->count; i++) {
			found->address[i] -= moved;
			found->base[i] = found->base[i] ? found->base[i] - moved : 0;
		}
		json_open(j, NULL, '{');
		json_str(j, "type", "symbols");
		symbols_json(found, "symbols", j);
		json_close(j, '}');
		json_line(j);
	}
	if (lines)
		fclose(lines);
	free(wanted);
	free(found);
}

static void header_json(struct json *j)
{
	char info[TRACE_TEXT_MAX];
	int64_t now_ns = clock_now_ns(CLOCK_REALTIME);

	trace_read(here.instance, "last_boot_info", info);
	json_open(j, NULL, '{');
	json_str(j, "type", "last_boot");
	json_int(j, "version", 1);
	json_str(j, "instance", here.name);
	json_str(j, "info", info);
	json_str(j, "read_boot_id", here.boot);
	json_str(j, "release", here.system.release);
	json_str(j, "kernel_version", here.system.version);
	json_int(j, "booted_realtime_ns", now_ns - clock_now_ns(CLOCK_BOOTTIME));
	json_close(j, '}');
	json_line(j);
}

/* Writes everything about the last boot as text. Returns 0 or an errno. */
static int collect(char **text, size_t *len, bool *empty)
{
	struct layout *layout = calloc(1, sizeof(*layout));
	struct addresses *addresses = calloc(1, sizeof(*addresses));
	FILE *out = open_memstream(text, len);
	struct boot_rings rings = {0};
	char format[TRACE_TEXT_MAX];
	struct json j;
	int error = layout && addresses && out ? read_layout(layout) : ENOMEM;

	*empty = true;
	if (!error) {
		rings.data_offset = layout->data_offset;
		rings.message_id =
			trace_event_format(here.instance, MESSAGES, format) ? trace_event_id(format) : 0;
		rings.switch_id =
			trace_event_format(here.instance, SWITCHES, format) ? trace_event_id(format) : 0;
		error = boot_rings_read(&rings, here.instance, layout->page_size);
	}
	if (!error) {
		for (size_t i = 0; i < rings.count; i++)
			*empty &= !rings.rings[i].count;
		boot_rings_choose(&rings, before_ns);
		json_start(&j, out);
		header_json(&j);
		if (here.armed)
			fputs(here.armed, out);
		formats_json(layout, rings.count, addresses, &j);
		boot_rings_json(&rings, &j);
		symbols_of_last_boot(&rings, addresses, &j);
	}
	boot_rings_free(&rings);
	if (out && (fclose(out) || !*text) && !error)
		error = ENOMEM;
	free(addresses);
	free(layout);
	return error;
}

static int is_kept(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return entry->d_name[0] != '.' && len > strlen(KEPT) &&
	       !strcmp(entry->d_name + len - strlen(KEPT), KEPT);
}

static int by_age(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Returns the name of the newest file, malloc'ed, after removing the oldest ones; NULL: there is none. */
static char *newest_kept(void)
{
	struct dirent **found;
	int count = scandir(folder, &found, is_kept, by_age);
	char *newest = NULL;

	for (int i = 0; i < count; i++) {
		if (i + KEPT_MAX < count)
			unlinkat(here.folder, found[i]->d_name, 0);
		if (i == count - 1)
			newest = strdup(found[i]->d_name);
		free(found[i]);
	}
	if (count >= 0)
		free(found);
	return newest;
}

/* Reads the ring, and keeps what it has. Names begin with the time, so that they sort. Returns 0 or an errno.
 * *text: what was read, malloc'ed; NULL: the ring has nothing of the last boot. */
static int keep_last_boot(char **text)
{
	char name[64];
	size_t len;
	bool empty;
	int error = collect(text, &len, &empty);

	if (!error && empty && !here.armed) { /* nobody had armed it */
		free(*text);
		*text = NULL;
		return 0;
	}
	snprintf(name, sizeof(name), "%020lld" KEPT, (long long)clock_now_ns(CLOCK_REALTIME));
	if (!error)
		error = write_whole(name, *text, len);
	if (!error && here.armed)
		unlinkat(here.folder, ARMED, 0);
	return error;
}

static int arm_ring(unsigned int *events)
{
	char *names[TRACE_EVENTS_MAX], line[LINE_MAX_LEN] = "", text[24];
	unsigned int found = trace_events_find(here.instance, EVENTS, names);
	FILE *out = fmemopen(line, sizeof(line), "w");
	struct json j;
	int error = out ? 0 : errno;

	/* Setting the clock empties the ring. */
	if (!error && (!trace_write(here.instance, "tracing_on", "0") ||
		       !trace_write(here.instance, "trace_clock", "mono")))
		error = errno;
	trace_write(here.instance, "options/overwrite", "1");
	*events = 0;
	for (unsigned int i = 0; i < found && !error; i++)
		*events += trace_event_enable(here.instance, names[i], true);
	if (!error && !*events)
		error = ENOENT;
	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)symbols_address("_stext"));
	if (!error) {
		json_start(&j, out);
		json_open(&j, NULL, '{');
		json_str(&j, "type", "armed");
		json_str(&j, "boot_id", here.boot);
		json_str(&j, "release", here.system.release);
		json_str(&j, "kernel_version", here.system.version);
		json_int(&j, "monotonic_ns", clock_now_ns(CLOCK_MONOTONIC));
		json_int(&j, "realtime_ns", clock_now_ns(CLOCK_REALTIME));
		json_str(&j, "stext", text);
		json_uint(&j, "events", *events);
		json_close(&j, '}');
		json_line(&j);
	}
	if (out)
		fclose(out);
	if (!error)
		error = write_whole(ARMED, line, strlen(line));
	if (!error && !trace_write(here.instance, "tracing_on", "1"))
		error = errno;
	return error;
}

static int disarm_ring(void)
{
	unlinkat(here.folder, ARMED, 0);
	return trace_write(here.instance, "events/enable", "0") ? 0 : errno;
}

static void state_json(bool recording, unsigned int events, const char *kept)
{
	struct json j;

	json_start(&j, stdout);
	json_open(&j, NULL, '{');
	json_str(&j, "type", "last_boot_state");
	json_int(&j, "version", 1);
	json_str(&j, "instance", here.name);
	json_str(&j, "boot_id", here.boot);
	json_bool(&j, "armed", armed_now() && is_recording());
	json_bool(&j, "recorded_before", recording);
	json_uint(&j, "events", events);
	if (kept)
		json_str(&j, "kept", kept);
	else
		json_null(&j, "kept");
	json_close(&j, '}');
	json_line(&j);
}

static int work(void)
{
	bool recording = is_recording(), ours = armed_now() && recording;
	char *text = NULL, *kept = NULL;
	unsigned int events = 0;
	/* Once this boot has armed the ring, the ring has no events of the last one. */
	int error = recording || armed_now() ? 0 : keep_last_boot(&text);

	if (error && !text)
		return error_line(STATUS_CANNOT_MEASURE, "internal", "cannot read the trace ring %s: %s",
				  here.name, errname(error));
	if (error)
		fputs(text, stdout); /* the ring is empty now, so this is the only copy */
	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "internal", "cannot write to %.200s: %s", folder,
				  errname(error));
	free(text);
	if (arm && !ours)
		error = arm_ring(&events);
	else if (disarm)
		error = disarm_ring();
	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "internal", "cannot %s the trace ring %s: %s",
				  arm ? "arm" : "disarm", here.name, errname(error));
	free(here.armed);
	here.armed = text_of(ARMED, LINE_MAX_LEN);
	kept = newest_kept();
	state_json(recording && !ours, events, kept);
	text = kept ? text_of(kept, KEPT_BYTES_MAX) : NULL;
	if (text)
		fputs(text, stdout);
	free(text);
	free(kept);
	return fflush(stdout) ? STATUS_CANNOT_MEASURE : STATUS_OK;
}

static int verb_last_boot(int argc, char **argv)
{
	int error, status = options_parse(table, argc, argv);

	if (status)
		return status < 0 ? STATUS_OK : status;
	if (arm && disarm)
		return usage_error("give --arm or --disarm, not both");
	status = open_ring();
	if (status)
		return status;
	error = open_folder();
	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "internal", "cannot use the folder %.200s: %s",
				  folder, errname(error));
	boot_id_read(here.boot);
	uname(&here.system);
	here.armed = text_of(ARMED, LINE_MAX_LEN);
	return work();
}

AGENT_VERB("last-boot", verb_last_boot, "read and keep the kernel's trace of the last boot; arm the ring")
