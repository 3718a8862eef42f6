// SPDX-License-Identifier: MIT OR Apache-2.0
/* Which vDSO does this process have? Its functions, and what it says of itself. */
#include "guest.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

struct vdso vdso;

static const Elf64_Dyn *dynamic(void)
{
	const Elf64_Ehdr *header = (const void *)vdso.base;
	const Elf64_Phdr *segments = (const void *)(vdso.base + header->e_phoff);

	for (int i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_DYNAMIC)
			return (const void *)(vdso.base + segments[i].p_offset);
	die("vdso: no dynamic segment");
	return NULL;
}

static void *symbol(const char *x86, const char *arm)
{
#ifdef __x86_64__
	const char *wanted = x86;

	(void)arm;
#else
	const char *wanted = arm;

	(void)x86;
#endif
	const Elf64_Sym *symbols = NULL;
	const char *strings = NULL;
	const uint32_t *hash = NULL;

	if (!wanted)
		return NULL;
	for (const Elf64_Dyn *d = dynamic(); d->d_tag != DT_NULL; d++) {
		const void *at = vdso.base + d->d_un.d_ptr;

		if (d->d_tag == DT_SYMTAB)
			symbols = at;
		else if (d->d_tag == DT_STRTAB)
			strings = at;
		else if (d->d_tag == DT_HASH)
			hash = at;
	}
	if (!symbols || !strings || !hash)
		die("vdso: no symbol table");
	/* The second word of a hash table is the number of symbols. */
	for (uint32_t i = 0; i < hash[1]; i++)
		if (symbols[i].st_shndx != SHN_UNDEF && !strcmp(strings + symbols[i].st_name, wanted))
			return (void *)(vdso.base + symbols[i].st_value);
	return NULL;
}

void vdso_find(void)
{
	vdso.base = (const void *)getauxval(AT_SYSINFO_EHDR);
	if (!vdso.base)
		die("vdso: none is mapped");
	vdso.clock_gettime = symbol("__vdso_clock_gettime", "__kernel_clock_gettime");
	vdso.clock_getres = symbol("__vdso_clock_getres", "__kernel_clock_getres");
	vdso.gettimeofday = symbol("__vdso_gettimeofday", "__kernel_gettimeofday");
	vdso.time = symbol("__vdso_time", NULL);
	vdso.getcpu = symbol("__vdso_getcpu", NULL);
	vdso.clock_gettime_ns = symbol("__vdso_clock_gettime_ns", "__vdso_clock_gettime_ns");
	vdso.rt_sigreturn = symbol(NULL, "__kernel_rt_sigreturn");
	if (!vdso.clock_gettime || !vdso.clock_getres || !vdso.gettimeofday)
		die("vdso: a function is missing");
}

/* Prints the build id, and the words of the page that tell whose layout it has. */
void judge_identity(void)
{
	const Elf64_Ehdr *header = (const void *)vdso.base;
	const Elf64_Phdr *segments = (const void *)(vdso.base + header->e_phoff);
	const uint8_t *page = vdso.base - DATA_OFFSET;
	char line[128], id[64] = "none";
	bool ours = false;
	FILE *maps;

	for (int i = 0; i < header->e_phnum; i++) {
		const uint8_t *at = vdso.base + segments[i].p_offset;
		const uint8_t *end = at + segments[i].p_filesz;

		if (segments[i].p_type != PT_NOTE)
			continue;
		while (at + sizeof(Elf64_Nhdr) <= end) {
			const Elf64_Nhdr *note = (const void *)at;
			const uint8_t *name = at + sizeof(*note);
			const uint8_t *desc = name + ((note->n_namesz + 3) & ~3u);

			if (note->n_type == NT_GNU_BUILD_ID && !strcmp((const char *)name, "GNU") &&
			    note->n_descsz <= 31)
				for (uint32_t b = 0; b < note->n_descsz; b++)
					snprintf(id + 2 * b, 3, "%02x", desc[b]);
			if (!strcmp((const char *)name, "uVDSO"))
				ours = true;
			at = desc + ((note->n_descsz + 3) & ~3u);
		}
	}
	printf("@identity build_id=%s note=%d", id, ours);
	/* Another image may have fewer pages below it. */
	if (ours) {
		uint64_t magic;
		int32_t mode;

		memcpy(&magic, page + 256, sizeof(magic));
		memcpy(&mode, page + 4, sizeof(mode));
		printf(" magic=%016llx mode=%d", (unsigned long long)magic, mode);
	}
	printf("\n");
	maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "[v"))
			printf("maps: %s", line);
	if (maps)
		fclose(maps);
}
