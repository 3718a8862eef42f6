/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The image in this process: mapped below its slots, its functions found by name and version. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host.h"

/* The same in every run, so that a log of executed addresses can be filtered; 64 KiB aligned. */
#define IMAGE_AT 0x20000000ul

struct functions image;
const unsigned char *image_base;
size_t image_bytes, image_slot_bytes;
volatile struct uvdso_page *page, *page_behind;
bool emulated, enosys;

static void fail(const char *what)
{
	fprintf(stderr, "host: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void *map(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	void *place = mmap(at, bytes, protection, flags | (at ? MAP_FIXED : 0), fd, offset);
	if (place == MAP_FAILED)
		fail("mmap");
	return place;
}

static const void *dynamic_entry(const ElfW(Dyn) *dynamic, ElfW(Sxword) tag)
{
	for (; dynamic->d_tag != DT_NULL; dynamic++)
		if (dynamic->d_tag == tag)
			return image_base + dynamic->d_un.d_ptr;
	errno = ENOENT;
	fail("a dynamic entry");
	return NULL;
}

/* The name of the version that `index` stands for. */
static const char *version_name(const ElfW(Dyn) *dynamic, unsigned index)
{
	const ElfW(Verdef) *verdef = dynamic_entry(dynamic, DT_VERDEF);
	const char *strings = dynamic_entry(dynamic, DT_STRTAB);
	for (;;) {
		if ((verdef->vd_ndx & 0x7fff) == index) {
			const ElfW(Verdaux) *aux = (const void *)((const char *)verdef + verdef->vd_aux);
			return strings + aux->vda_name;
		}
		if (!verdef->vd_next)
			return "";
		verdef = (const void *)((const char *)verdef + verdef->vd_next);
	}
}

static void *find(const char *name, const char *version)
{
	const ElfW(Ehdr) *header = (const void *)image_base;
	const ElfW(Phdr) *segment = (const void *)(image_base + header->e_phoff);
	const ElfW(Dyn) *dynamic = NULL;
	for (int i = 0; i < header->e_phnum; i++)
		if (segment[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(image_base + segment[i].p_vaddr);
	if (!dynamic)
		return NULL;
	const ElfW(Sym) *symbols = dynamic_entry(dynamic, DT_SYMTAB);
	const char *strings = dynamic_entry(dynamic, DT_STRTAB);
	const ElfW(Half) *versions = dynamic_entry(dynamic, DT_VERSYM);
	const uint32_t *hash = dynamic_entry(dynamic, DT_HASH);
	for (uint32_t i = 1; i < hash[1]; i++) {
		if (strcmp(strings + symbols[i].st_name, name))
			continue;
		if (!strcmp(version_name(dynamic, versions[i] & 0x7fff), version))
			return (void *)(image_base + symbols[i].st_value);
	}
	return NULL;
}

static void find_functions(void)
{
	struct {
		const char *name, *version;
		void *place;
	} table[] = {
#define FUNCTION(name, version, field) {name, version, &image.field}
#if defined(__aarch64__)
		FUNCTION("__kernel_clock_gettime", "LINUX_2.6.39", gettime),
		FUNCTION("__kernel_clock_getres", "LINUX_2.6.39", getres),
		FUNCTION("__kernel_gettimeofday", "LINUX_2.6.39", gettimeofday),
		FUNCTION("__kernel_rt_sigreturn", "LINUX_2.6.39", rt_sigreturn),
#else
#if defined(__riscv)
#define VERSION "LINUX_4.15"
		FUNCTION("__vdso_rt_sigreturn", VERSION, rt_sigreturn),
#else
#define VERSION "LINUX_2.6"
#endif
		FUNCTION("__vdso_clock_gettime", VERSION, gettime),
		FUNCTION("__vdso_clock_getres", VERSION, getres),
		FUNCTION("__vdso_gettimeofday", VERSION, gettimeofday),
#if __SIZEOF_POINTER__ == 4
		FUNCTION("__vdso_clock_gettime64", VERSION, gettime64),
		FUNCTION("__vdso_clock_getres_time64", VERSION, getres64),
#endif
#if !defined(__arm__)
		FUNCTION("__vdso_getcpu", VERSION, getcpu),
#endif
#if defined(__i386__) || defined(__x86_64__)
		FUNCTION("__vdso_time", VERSION, time),
#endif
#if defined(__i386__)
		FUNCTION("__kernel_vsyscall", "LINUX_2.5", vsyscall),
		FUNCTION("__kernel_sigreturn", "LINUX_2.5", sigreturn),
		FUNCTION("__kernel_rt_sigreturn", "LINUX_2.5", rt_sigreturn),
#endif
#endif
		FUNCTION("__vdso_clock_gettime_ns", "UVDSO_1", nanos),
	};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		void *code = find(table[i].name, table[i].version);
		CHECK(code, "no %s@%s", table[i].name, table[i].version);
		if (!code)
			exit(1);
		memcpy(table[i].place, &code, sizeof code);
	}
	if (sizeof(long) == 8) {
		memcpy(&image.gettime64, &image.gettime, sizeof image.gettime);
		memcpy(&image.getres64, &image.getres, sizeof image.getres);
	}
}

void image_map(const char *path, size_t slot_bytes)
{
	int file = open(path, O_RDONLY);
	struct stat stat;
	if (file < 0 || fstat(file, &stat))
		fail(path);
	image_slot_bytes = slot_bytes;
	image_bytes = (stat.st_size + 4095) & ~(size_t)4095;
	unsigned char *slots = (unsigned char *)IMAGE_AT - UVDSO_SLOTS * slot_bytes;
	int pages = memfd_create("uvdso-page", MFD_CLOEXEC);
	if (pages < 0 || ftruncate(pages, 2 * slot_bytes))
		fail("memfd_create");
	/* Reserved slots stay without access: the image never touches them. */
	map(slots, UVDSO_SLOTS * slot_bytes + image_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	map(slots, 2 * slot_bytes, PROT_READ, MAP_SHARED, pages, 0);
	map((void *)IMAGE_AT, image_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	unsigned char *writable =
		map(NULL, 2 * slot_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, pages, 0);
	page = (void *)writable;
	page_behind = (void *)(writable + slot_bytes);
	image_base = (unsigned char *)IMAGE_AT;
	close(file);
	find_functions();
}

void page_clear(void)
{
	memset((void *)page, 0, sizeof *page);
	memset((void *)page_behind, 0, sizeof *page_behind);
	page->hrtimer_res = 1;
	page->coarse_res = 4000000;
	page->magic = UVDSO_PAGE_MAGIC;
	page->abi = UVDSO_PAGE_ABI;
}

void page_serve(int clock, int64_t sec, uint64_t nsec)
{
	page->clock_mode = UVDSO_MODE_MEMORY;
	for (int i = 0; i < 2; i++) {
		page->cs[i].mask = UINT64_MAX;
		page->cs[i].mult = 1;
		page->cs[i].shift = 0;
	}
	page->basetime[clock].sec = (uint64_t)sec;
	page->basetime[clock].nsec = nsec;
}

/* A system call's own return value: 0, or a negative error number. */
static long raw(long answer)
{
	return answer == -1 ? -errno : answer;
}

long kernel_gettime(int clock, struct spec *spec)
{
	return raw(syscall(SYS_clock_gettime, clock, spec));
}

long kernel_getres(int clock, struct spec *spec)
{
	return raw(syscall(SYS_clock_getres, clock, spec));
}

long kernel_gettimeofday(struct val *val, struct zone *zone)
{
	return raw(syscall(SYS_gettimeofday, val, zone));
}

long kernel_gettime64(int clock, struct spec64 *spec)
{
#if __SIZEOF_POINTER__ == 4
	return raw(syscall(SYS_clock_gettime64, clock, spec));
#else
	return raw(syscall(SYS_clock_gettime, clock, spec));
#endif
}

long kernel_getres64(int clock, struct spec64 *spec)
{
#if __SIZEOF_POINTER__ == 4
	return raw(syscall(SYS_clock_getres_time64, clock, spec));
#else
	return raw(syscall(SYS_clock_getres, clock, spec));
#endif
}
