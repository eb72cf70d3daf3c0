/* The redirection of a CUDA runtime inside another library, whose functions become jumps to the entries of this
   library. A runtime inside a library requests private tables of the driver, whose contents are not documented. CuPy's
   wheels have a symbol table with the functions of their runtime. CuTe DSL's library has no such table. For each entry
   it exports a function that jumps to the entry, such as `_cudaMalloc` for cudaMalloc. cuda.bindings returns addresses
   of such functions. */
#define _GNU_SOURCE
#include "../driver.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct object {
    const char *path;
    uintptr_t base;
    int is_found;
};

struct image {
    const unsigned char *data;
    size_t size;
};

#if defined(__x86_64__)
enum { JUMP_BYTES = 14 };
/* The instruction is jmp *(%rip), and the address follows it. */
static const unsigned char jump[] = {0xFF, 0x25, 0, 0, 0, 0};

/* Return the target of a function that only jumps, or 0 for any other function. */
static uintptr_t forwards_to(const unsigned char *code) {
    int32_t distance;
    memcpy(&distance, code + 1, sizeof distance);
    return code[0] == 0xE9 ? (uintptr_t)code + 5 + distance : 0;
}
#elif defined(__aarch64__)
enum { JUMP_BYTES = 16 };
/* The instructions are ldr x16, 8 and br x16. */
static const unsigned char jump[] = {0x50, 0, 0, 0x58, 0, 0x02, 0x1F, 0xD6};

static uintptr_t forwards_to(const unsigned char *code) {
    uint32_t word;
    memcpy(&word, code, sizeof word);
    int32_t distance = (int32_t)(word << 6) >> 4;
    return word >> 26 == 5 ? (uintptr_t)code + distance : 0;
}
#else
enum { JUMP_BYTES = 8 };
static const unsigned char jump[1];

static uintptr_t forwards_to(const unsigned char *code) {
    (void)code;
    return 0;
}
#endif

static int compare(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct object *object = data;
    char real[PATH_MAX];
    if (info->dlpi_name == NULL || realpath(info->dlpi_name, real) == NULL || strcmp(real, object->path) != 0)
        return 0;
    object->base = info->dlpi_addr;
    object->is_found = 1;
    return 1;
}

static int begin_at(uintptr_t code, const void *target) {
    size_t page = sysconf(_SC_PAGESIZE);
    uintptr_t first = code / page * page, last = (code + JUMP_BYTES + page - 1) / page * page;
    if (mprotect((void *)first, last - first, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        return 0;
    memcpy((void *)code, jump, sizeof jump);
    memcpy((void *)(code + sizeof jump), &target, sizeof target);
    __builtin___clear_cache((char *)code, (char *)code + JUMP_BYTES);
    return mprotect((void *)first, last - first, PROT_READ | PROT_EXEC) == 0;
}

static int is_of_cuda(const char *name) {
    return strncmp(name, "cuda", 4) == 0 || strncmp(name, "__cuda", 6) == 0 || strncmp(name, "_cuda", 5) == 0 ||
           strncmp(name, "_cu", 3) == 0;
}

/* Return the entry of this library that replaces a function of another library. */
static const void *entry_for(void *library, const char *name) {
    if (!is_of_cuda(name))
        return NULL;
    const void *entry = dlsym(library, name);
    if (entry == NULL && strcmp(name, "_cudaLaunchKernelEx") == 0)
        return dlsym(library, "cudaLaunchKernelExC");
    return entry == NULL && name[0] == '_' ? dlsym(library, name + 1) : entry;
}

/* Redirect one function, if this library has an entry for it. */
static int redirect(void *library, const char *name, uintptr_t code, size_t size) {
    const void *target = entry_for(library, name);
    if (target == NULL)
        return 0;
    uintptr_t inner = name[0] == '_' ? forwards_to((const unsigned char *)code) : 0;
    if (inner != 0)
        return begin_at(inner, target);
    return size >= JUMP_BYTES && begin_at(code, target);
}

static int has(const struct image *image, uint64_t offset, uint64_t size) {
    return offset <= image->size && size <= image->size - offset;
}

static int redirect_table(void *library, const struct image *image, const Elf64_Shdr *table, const Elf64_Shdr *names,
                          uintptr_t base) {
    int count = 0;
    if (!has(image, table->sh_offset, table->sh_size) || !has(image, names->sh_offset, names->sh_size))
        return 0;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        memcpy(&symbol, image->data + table->sh_offset + at, sizeof symbol);
        const char *name = (const char *)image->data + names->sh_offset + symbol.st_name;
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
            symbol.st_name >= names->sh_size || memchr(name, 0, names->sh_size - symbol.st_name) == NULL)
            continue;
        count += redirect(library, name, base + symbol.st_value, symbol.st_size);
    }
    return count;
}

static int redirect_tables(void *library, const struct image *image, uintptr_t base) {
    Elf64_Ehdr head;
    int count = 0;
    if (image->size < sizeof head)
        return 0;
    memcpy(&head, image->data, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_shentsize != sizeof(Elf64_Shdr) ||
        !has(image, head.e_shoff, (uint64_t)head.e_shnum * sizeof(Elf64_Shdr)) || head.e_shoff % 8)
        return 0;
    const Elf64_Shdr *sections = (const void *)(image->data + head.e_shoff);
    for (int i = 0; i < head.e_shnum; ++i) {
        int is_table = sections[i].sh_type == SHT_SYMTAB || sections[i].sh_type == SHT_DYNSYM;
        if (is_table && sections[i].sh_link < head.e_shnum)
            count += redirect_table(library, image, &sections[i], &sections[sections[i].sh_link], base);
    }
    return count;
}

/* Redirect a function at an address, if this library has an entry for it. */
int cuda_tma_redirect_function(const char *name, void *code) {
    Dl_info here;
    void *library = dladdr((void *)cuda_tma_redirect_function, &here) != 0
                        ? dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
    int is_redirected = library != NULL && code != NULL && redirect(library, name, (uintptr_t)code, JUMP_BYTES);
    if (library != NULL)
        dlclose(library);
    return is_redirected;
}

/* Redirect the runtime of a library that this process has loaded. Return the number of redirected functions. */
int cuda_tma_redirect(const char *path) {
    char real[PATH_MAX];
    Dl_info here;
    struct stat status;
    struct object object = {real, 0, 0};
    if (realpath(path, real) == NULL || dladdr((void *)cuda_tma_redirect, &here) == 0)
        return 0;
    dl_iterate_phdr(compare, &object);
    void *library = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    int file = object.is_found && library != NULL ? open(real, O_RDONLY | O_CLOEXEC) : -1;
    int count = 0;
    if (file >= 0 && fstat(file, &status) == 0 && status.st_size > 0) {
        struct image image = {mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, file, 0), status.st_size};
        if (image.data != MAP_FAILED) {
            count = redirect_tables(library, &image, object.base);
            munmap((void *)image.data, image.size);
        }
    }
    if (file >= 0)
        close(file);
    if (library != NULL)
        dlclose(library);
    return count;
}
