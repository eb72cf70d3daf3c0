/* The names of the entries that this library replaces, and the addresses of the driver's entries. Programs find the
   driver's entries by a link, by dlsym and by cuGetProcAddress. The loader gives a linked program the symbols of this
   library first. This file replaces the other two functions. */
#define _GNU_SOURCE
#include "on_gpu.h"

#include <dlfcn.h>
#include <string.h>

typedef void *(*lookup)(void *handle, const char *name);

static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
static lookup found_lookup;

static lookup own_lookup(void) {
    for (size_t i = 0; found_lookup == NULL && i < sizeof versions / sizeof *versions; ++i)
        found_lookup = (lookup)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    return found_lookup;
}

void *driver_entry(const char *name) {
    static void *driver;
    if (driver == NULL)
        driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver == NULL)
        driver = dlopen("libcuda.so.1", RTLD_LAZY);
    return driver != NULL ? own_lookup()(driver, name) : NULL;
}

/* Find an entry of the NVRTC with which a library of the program is linked. */
static void *loaded_nvrtc(const char *name) {
    static const char *const files[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};
    void *found = NULL;
    for (size_t i = 0; found == NULL && i < sizeof files / sizeof *files; ++i) {
        void *library = dlopen(files[i], RTLD_LAZY | RTLD_NOLOAD);
        found = library != NULL ? own_lookup()(library, name) : NULL;
    }
    return found;
}

/* ---- the replaced entries ---- */

#define ENTRIES(X)                                                                                                  \
    X(cuGetProcAddress)                                                                                             \
    X(cuGetProcAddress_v2) X(cuLaunchKernel) X(cuLaunchKernel_ptsz) X(cuLaunchKernelEx) X(cuLaunchKernelEx_ptsz)    \
    X(cuLaunchCooperativeKernel) X(cuLaunchCooperativeKernel_ptsz) X(cuGraphLaunch) X(cuGraphLaunch_ptsz)           \
    X(cuModuleLoad) X(cuModuleLoadData) X(cuModuleLoadDataEx) X(cuModuleLoadFatBinary) X(cuModuleGetFunction)       \
    X(cuModuleUnload) X(cuLibraryLoadData) X(cuLibraryLoadFromFile) X(cuLibraryGetKernel) X(cuLibraryGetModule)     \
    X(cuLibraryEnumerateKernels) X(cuLibraryUnload) X(cuKernelGetFunction) X(nvrtcCompileProgram) X(nvrtcCreateProgram)     \
    X(nvrtcDestroyProgram) X(nvrtcGetCUBIN)

#define DECLARE(name) extern char own_##name __asm__(#name);
ENTRIES(DECLARE)
#define ROW(name) {#name, &own_##name},
static const struct {
    const char *name;
    void *entry;
} entries[] = {ENTRIES(ROW)};

static void *replaced(const char *name) {
    if (name == NULL || (strncmp(name, "cu", 2) != 0 && strncmp(name, "nvrtc", 5) != 0))
        return NULL;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; ++i)
        if (strcmp(entries[i].name, name) == 0)
            return entries[i].entry;
    return NULL;
}

/* The library replaces the entries of one NVRTC. A process may have several versions with different handles, of which
   the library uses the first version. */
static const char *nvrtc_file;

static const char *file_of(void *entry) {
    Dl_info info;
    return entry != NULL && dladdr(entry, &info) != 0 ? info.dli_fname : NULL;
}

/* Return whether an entry belongs to the NVRTC whose entries are replaced. */
static int is_first_nvrtc(void *entry) {
    const char *file = file_of(entry);
    if (nvrtc_file == NULL && file != NULL)
        nvrtc_file = strdup(file);
    return file != NULL && nvrtc_file != NULL && strcmp(file, nvrtc_file) == 0;
}

/* Return the file of the NVRTC with which the library of a caller is linked, or NULL if the library looks entries up.
   */
static const char *linked_nvrtc(void *caller, const char *name) {
    const char *file = file_of(caller);
    void *library = file != NULL ? dlopen(file, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *found = library != NULL ? own_lookup()(library, name) : NULL;
    return found != NULL && found != replaced(name) ? file_of(found) : NULL;
}

/* Return the NVRTC that a caller uses as the result of dlopen, or NULL without an NVRTC. */
void *nvrtc_of(void *caller, const char *name) {
    const char *file = linked_nvrtc(caller, name);
    if (file == NULL && nvrtc_file == NULL) {
        void *linked = own_lookup()(RTLD_NEXT, name);
        is_first_nvrtc(linked != NULL ? linked : loaded_nvrtc(name));
    }
    file = file != NULL ? file : nvrtc_file;
    return file != NULL ? dlopen(file, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

void *entry_in(void *library, const char *name) {
    return library != NULL ? own_lookup()(library, name) : NULL;
}

/* The real function finds the caller by the return address, so this call must be a tail call. */
__attribute__((optimize("O2"))) void *dlsym(void *restrict handle, const char *restrict name) {
    lookup find = own_lookup();
    void *own = handle == RTLD_NEXT ? NULL : replaced(name);
    if (own == NULL)
        return find(handle, name);
    void *found = find(handle, name);
    if (found == own) /* After the first global entry, search for another entry. */
        found = find(RTLD_NEXT, name);
    return found == NULL || (*name == 'n' && !is_first_nvrtc(found)) ? found : own;
}

static void *by_version(const char *name, int version, uint64_t flags) {
    enum { PER_THREAD = 2 };
    char other[64];
    if (name == NULL || strlen(name) > 48)
        return NULL;
    if (strcmp(name, "cuGetProcAddress") == 0 && version >= 12000)
        return replaced("cuGetProcAddress_v2");
    strcpy(stpcpy(other, name), "_ptsz");
    void *own = flags & PER_THREAD ? replaced(other) : NULL;
    return own != NULL ? own : replaced(name);
}

CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, uint64_t flags, int *status) {
    CUresult result = CALL(cuGetProcAddress_v2, name, entry, version, flags, status);
    void *own = result == SUCCESS && entry != NULL && *entry != NULL ? by_version(name, version, flags) : NULL;
    if (own != NULL)
        *entry = own;
    return result;
}

CUresult cuGetProcAddress(const char *name, void **entry, int version, uint64_t flags) {
    CUresult result = CALL(cuGetProcAddress, name, entry, version, flags);
    void *own = result == SUCCESS && entry != NULL && *entry != NULL ? by_version(name, version, flags) : NULL;
    if (own != NULL)
        *entry = own;
    return result;
}
