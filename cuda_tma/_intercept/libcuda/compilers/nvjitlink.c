/* The interface of nvJitLink, in front of the real library, as nvrtc.c is in front of NVRTC. A link returns PTX in
   place of machine code. nvJitLink itself links LTO-IR, and returns the PTX of the result. For inputs that are PTX,
   nvJitLink returns no PTX, so Python joins their texts. */
#define _GNU_SOURCE
#include "linking.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* NO_LIBRARY is NVJITLINK_ERROR_INTERNAL. The other constants are also errors of nvJitLink. */
enum { NO_LIBRARY = 6, UNRECOGNIZED_INPUT = 8, NULL_INPUT = 10 };

/* A struct jit_link is a link of texts, or a link of nvJitLink. */
struct jit_link {
    struct link *texts;
    void *handle;
    char log[96];
};

static void *library;

/* Store the library of nvJitLink from the result of dlopen. */
void cuda_tma_nvJitLink(void *handle) {
    library = handle;
}

typedef uintptr_t (*entry)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static int call(const char *name, const void *a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e) {
    if (library == NULL)
        run_python("try: __import__('cuda.pathfinder', fromlist=['x']).load_nvidia_dynamic_lib('nvJitLink')\n"
                   /* The Python text stores the library. If the library is absent, the caller returns the error. */
                   "except Exception: pass");
    entry function = (entry)dlsym(library != NULL ? library : RTLD_NEXT, name);
    return function != NULL ? (int)function((uintptr_t)a, b, c, d, e) : NO_LIBRARY;
}

int nvJitLinkVersion(unsigned *major, unsigned *minor) {
    return call("nvJitLinkVersion", major, (uintptr_t)minor, 0, 0, 0);
}

static int has(const char *option, uint32_t count, const char **options) {
    for (uint32_t i = 0; i < count; ++i)
        if (options[i] != NULL && strcmp(options[i], option) == 0)
            return 1;
    return 0;
}

static int create_own(struct jit_link *made, uint32_t count, const char **options) {
    uint32_t total = count;
    const char **given = calloc(count + 2, sizeof *given);
    if (given == NULL)
        return NO_LIBRARY;
    memcpy(given, options, count * sizeof *given);
    if (!has("-ptx", count, options))
        given[total++] = "-ptx";
    if (!has("-lineinfo", count, options))
        given[total++] = "-lineinfo";
    int result = call("nvJitLinkCreate", &made->handle, total, (uintptr_t)given, 0, 0);
    free(given);
    return result;
}

int nvJitLinkCreate(void **handle, uint32_t count, const char **options) {
    if (handle == NULL || (count > 0 && options == NULL))
        return NULL_INPUT;
    struct jit_link *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NO_LIBRARY;
    *handle = made;
    if (has("-lto", count, options))
        return create_own(made, count, options);
    made->texts = new_link();
    return made->texts != NULL ? 0 : NO_LIBRARY;
}

int nvJitLinkDestroy(void **handle) {
    struct jit_link *link = handle != NULL ? *handle : NULL;
    if (link == NULL)
        return NULL_INPUT;
    int result = 0;
    if (link->texts != NULL)
        end_link(link->texts);
    else if (link->handle != NULL)
        result = call("nvJitLinkDestroy", &link->handle, 0, 0, 0, 0);
    free(link);
    *handle = NULL;
    return result;
}

/* A link to PTX cannot contain the machine code of the device runtime. The server has the functions of the device
   runtime as PTX. */
static int is_device_runtime(const char *name) {
    return name != NULL && strstr(name, "libcudadevrt") != NULL;
}

int nvJitLinkAddData(struct jit_link *link, int type, const void *data, size_t size, const char *name) {
    if (link == NULL)
        return NULL_INPUT;
    if (is_device_runtime(name))
        return 0;
    if (link->texts == NULL)
        return call("nvJitLinkAddData", link->handle, type, (uintptr_t)data, size, (uintptr_t)name);
    return add_input(link->texts, data, size) == SUCCESS ? 0 : UNRECOGNIZED_INPUT;
}

int nvJitLinkAddFile(struct jit_link *link, int type, const char *path) {
    if (link == NULL)
        return NULL_INPUT;
    if (is_device_runtime(path))
        return 0;
    if (link->texts == NULL)
        return call("nvJitLinkAddFile", link->handle, type, (uintptr_t)path, 0, 0);
    return add_input_file(link->texts, path) == SUCCESS ? 0 : UNRECOGNIZED_INPUT;
}

int nvJitLinkComplete(struct jit_link *link) {
    if (link == NULL)
        return NULL_INPUT;
    if (link->texts == NULL)
        return call("nvJitLinkComplete", link->handle, 0, 0, 0, 0);
    if (complete_link(link->texts) == SUCCESS)
        return 0;
    strcpy(link->log, "cuda-tma cannot link these inputs; its report has the reason");
    return UNRECOGNIZED_INPUT;
}

/* The following entries return the size and the text of the result of a link, for both kinds of code. */
static int linked_size(struct jit_link *link, size_t *size) {
    if (link == NULL || size == NULL)
        return NULL_INPUT;
    if (link->texts == NULL)
        return call("nvJitLinkGetLinkedPtxSize", link->handle, (uintptr_t)size, 0, 0, 0);
    *size = link->texts->linked.size;
    return 0;
}

static int linked(struct jit_link *link, char *code) {
    if (link == NULL || code == NULL)
        return NULL_INPUT;
    if (link->texts == NULL)
        return call("nvJitLinkGetLinkedPtx", link->handle, (uintptr_t)code, 0, 0, 0);
    memcpy(code, link->texts->linked.data, link->texts->linked.size);
    return 0;
}

int nvJitLinkGetLinkedCubinSize(struct jit_link *link, size_t *size) {
    return linked_size(link, size);
}

int nvJitLinkGetLinkedCubin(struct jit_link *link, char *code) {
    return linked(link, code);
}

int nvJitLinkGetLinkedPtxSize(struct jit_link *link, size_t *size) {
    return linked_size(link, size);
}

int nvJitLinkGetLinkedPtx(struct jit_link *link, char *code) {
    return linked(link, code);
}

/* If nvJitLink runs the link, it also returns the logs, and LTO-IR as a result. */
static int of_log(const char *name, struct jit_link *link, void *target, int is_size, const char *text) {
    if (link == NULL || target == NULL)
        return NULL_INPUT;
    if (link->texts == NULL)
        return call(name, link->handle, (uintptr_t)target, 0, 0, 0);
    if (is_size)
        *(size_t *)target = strlen(text) + 1;
    else
        strcpy(target, text);
    return 0;
}

int nvJitLinkGetErrorLogSize(struct jit_link *link, size_t *size) {
    return of_log("nvJitLinkGetErrorLogSize", link, size, 1, link != NULL ? link->log : "");
}

int nvJitLinkGetErrorLog(struct jit_link *link, char *log) {
    return of_log("nvJitLinkGetErrorLog", link, log, 0, link != NULL ? link->log : "");
}

int nvJitLinkGetInfoLogSize(struct jit_link *link, size_t *size) {
    return of_log("nvJitLinkGetInfoLogSize", link, size, 1, "");
}

int nvJitLinkGetInfoLog(struct jit_link *link, char *log) {
    return of_log("nvJitLinkGetInfoLog", link, log, 0, "");
}

int nvJitLinkGetLinkedLTOIRSize(struct jit_link *link, size_t *size) {
    return of_log("nvJitLinkGetLinkedLTOIRSize", link, size, 1, "");
}

int nvJitLinkGetLinkedLTOIR(struct jit_link *link, void *code) {
    return of_log("nvJitLinkGetLinkedLTOIR", link, code, 0, "");
}
