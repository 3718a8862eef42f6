/*
 * Finds __vdso_clock_gettime as a runtime without a libc does, from the auxiliary vector and one
 * of the two hash tables: "parser sysv" looks at DT_HASH alone, "parser gnu" at DT_GNU_HASH alone.
 */
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

typedef long gettime(int, struct timespec *);

static const char *image;
static const Elf64_Sym *symbols;
static const char *strings;
static const uint16_t *versions;
static const Elf64_Verdef *definitions;

/* Whether symbol number `at` is `name` in version LINUX_2.6, found by its number, hash and name. */
static int matches(uint32_t at, const char *name)
{
    const Elf64_Sym *symbol = &symbols[at];
    const Elf64_Verdef *definition = definitions;

    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF ||
        strcmp(strings + symbol->st_name, name))
        return 0;
    for (;;) {
        const Elf64_Verdaux *aux =
            (const void *)((const char *)definition + definition->vd_aux);
        if (!(definition->vd_flags & VER_FLG_BASE) &&
            definition->vd_ndx == (versions[at] & 0x7fff))
            return definition->vd_hash == 0x3ae75f6 &&
                   !strcmp(strings + aux->vda_name, "LINUX_2.6");
        if (!definition->vd_next)
            return 0;
        definition = (const void *)((const char *)definition + definition->vd_next);
    }
}

static uint32_t by_sysv(const uint32_t *table, const char *name)
{
    uint32_t hash = 0;

    for (const char *at = name; *at; at++) {
        hash = (hash << 4) + (unsigned char)*at;
        hash = (hash ^ ((hash & 0xf0000000) >> 24)) & 0x0fffffff;
    }
    const uint32_t *buckets = table + 2, *chains = buckets + table[0];
    for (uint32_t at = buckets[hash % table[0]]; at; at = chains[at])
        if (matches(at, name))
            return at;
    return 0;
}

static uint32_t by_gnu(const uint32_t *table, const char *name)
{
    uint32_t hash = 5381, count = table[0], first = table[1], words = table[2];

    for (const char *at = name; *at; at++)
        hash = hash * 33 + (unsigned char)*at;
    const uint64_t *bloom = (const void *)(table + 4);
    uint64_t word = bloom[hash / 64 % words];
    if (!(word >> (hash % 64) & 1) || !(word >> ((hash >> table[3]) % 64) & 1))
        return 0;
    const uint32_t *buckets = (const void *)(bloom + words), *chains = buckets + count;
    for (uint32_t at = buckets[hash % count]; at >= first && at; at++) {
        if ((chains[at - first] | 1) == (hash | 1) && matches(at, name))
            return at;
        if (chains[at - first] & 1)
            break;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const Elf64_Dyn *dynamic = NULL;
    const uint32_t *sysv = NULL, *gnu = NULL;
    struct timespec now = {0, 0};

    image = (const char *)getauxval(AT_SYSINFO_EHDR);
    if (!image || argc != 2)
        return 2;
    const Elf64_Ehdr *header = (const void *)image;
    const Elf64_Phdr *segments = (const void *)(image + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_DYNAMIC)
            dynamic = (const void *)(image + segments[i].p_offset);
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        const void *pointer = image + dynamic->d_un.d_ptr;
        switch (dynamic->d_tag) {
        case DT_STRTAB: strings = pointer; break;
        case DT_SYMTAB: symbols = pointer; break;
        case DT_HASH: sysv = pointer; break;
        case DT_GNU_HASH: gnu = pointer; break;
        case DT_VERSYM: versions = pointer; break;
        case DT_VERDEF: definitions = pointer; break;
        }
    }
    if (!strings || !symbols || !versions || !definitions)
        return 3;
    uint32_t (*find)(const uint32_t *, const char *) =
        strcmp(argv[1], "gnu") ? by_sysv : by_gnu;
    const uint32_t *table = strcmp(argv[1], "gnu") ? sysv : gnu;
    if (!table)
        return 4;
    if (find(table, "__vdso_no_such_function"))
        return 5;
    uint32_t at = find(table, "__vdso_clock_gettime");
    if (!at)
        return 6;
    gettime *call = (gettime *)(image + symbols[at].st_value);
    for (int round = 0; round < 1000; round++)
        if (call(CLOCK_REALTIME, &now))
            return 7;
    printf("realtime %lld.%09ld\n", (long long)now.tv_sec, now.tv_nsec);
    return 0;
}
