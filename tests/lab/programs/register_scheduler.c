// SPDX-License-Identifier: MIT
/*
 * Registers a scheduler extension without a program of its own: the kernel's defaults schedule all tasks that
 * are not real-time (Documentation/scheduler/sched-ext.rst). It stays until the guest ends. Its table of
 * functions is a BPF map, whose layout is in the kernel's BTF (Documentation/bpf/btf.rst).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME "defaults"

static unsigned char kernel[64 << 20];

/* The table, and where the scheduler's name is in it. */
static uint32_t type, size, data, name;

static long bpf(int command, union bpf_attr *attributes)
{
	return syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

/* The bytes that follow a type. */
static size_t after(const struct btf_type *t)
{
	size_t members = BTF_INFO_VLEN(t->info);

	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_DATASEC:
	case BTF_KIND_ENUM64:
		return 12 * members;
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO:
		return 8 * members;
	default:
		return 0;
	}
}

static uint32_t offset_of(const struct btf_type *t, const char *strings, const char *member)
{
	const struct btf_member *members = (const struct btf_member *)(t + 1);

	for (unsigned int i = 0; i < BTF_INFO_VLEN(t->info); i++) {
		if (!strcmp(strings + members[i].name_off, member))
			return BTF_MEMBER_BIT_OFFSET(members[i].offset) / 8;
	}
	return 0;
}

static void find_types(void)
{
	const struct btf_header *header = (const struct btf_header *)kernel;
	const unsigned char *types = kernel + header->hdr_len + header->type_off;
	const unsigned char *end = types + header->type_len;
	const char *strings = (const char *)kernel + header->hdr_len + header->str_off;
	uint32_t id = 1;

	for (const unsigned char *at = types; at < end; id++) {
		const struct btf_type *t = (const struct btf_type *)at;

		if (!strcmp(strings + t->name_off, "bpf_struct_ops_sched_ext_ops")) {
			type = id;
			size = t->size;
			data = offset_of(t, strings, "data");
		} else if (!strcmp(strings + t->name_off, "sched_ext_ops")) {
			name = offset_of(t, strings, "name");
		}
		at += sizeof(*t) + after(t);
	}
}

int main(void)
{
	/* the kernel wants a BTF of the map's owner: one number */
	struct {
		struct btf_header header;
		struct btf_type number;
		uint32_t bits;
		char strings[5];
	} own = {{BTF_MAGIC, BTF_VERSION, 0, sizeof(struct btf_header), 0, 16, 16, 5},
		 {1, BTF_KIND_INT << 24, {4}},
		 32,
		 "\0int"};
	union bpf_attr attributes;
	uint32_t key = 0;
	int file = open("/sys/kernel/btf/vmlinux", O_RDONLY), owner, map;
	ssize_t n;
	char *value;

	for (size_t len = 0; (n = read(file, kernel + len, sizeof(kernel) - len)) > 0;)
		len += (size_t)n;
	find_types();
	memset(&attributes, 0, sizeof(attributes));
	attributes.btf = (uintptr_t)&own;
	attributes.btf_size = sizeof(own.header) + 16 + 5;
	owner = (int)bpf(BPF_BTF_LOAD, &attributes);
	memset(&attributes, 0, sizeof(attributes));
	attributes.map_type = BPF_MAP_TYPE_STRUCT_OPS;
	attributes.key_size = sizeof(key);
	attributes.value_size = size;
	attributes.max_entries = 1;
	attributes.btf_fd = (uint32_t)owner;
	attributes.btf_vmlinux_value_type_id = type;
	map = (int)bpf(BPF_MAP_CREATE, &attributes);
	value = calloc(1, size + sizeof(NAME));
	if (owner < 0 || map < 0 || !value) {
		perror("map");
		return 1;
	}
	strcpy(value + data + name, NAME);
	memset(&attributes, 0, sizeof(attributes));
	attributes.map_fd = (uint32_t)map;
	attributes.key = (uintptr_t)&key;
	attributes.value = (uintptr_t)value;
	if (bpf(BPF_MAP_UPDATE_ELEM, &attributes)) {
		perror("register");
		return 1;
	}
	return 0;
}
