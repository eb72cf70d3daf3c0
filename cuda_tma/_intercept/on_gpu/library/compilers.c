/* The replacement of NVRTC. A program requests machine code, and the session receives the PTX of the machine code. */
#define _GNU_SOURCE
#include "on_gpu.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { NO_NVRTC = 5 }; /* The value is NVRTC_ERROR_INVALID_OPTION. */

struct program {
    void *handle;
    void *library; /* A process may have several versions of NVRTC, so each program stores its library. */
    char *source;
    struct program *next;
};

static struct program *programs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int nvrtcCreateProgram(void **, const char *, const char *, int, const char *const *, const char *const *);
int nvrtcCompileProgram(void *, int, const char *const *), nvrtcDestroyProgram(void **);
int nvrtcGetCUBIN(void *, char *), nvrtcGetCUBINSize(void *, size_t *);
int nvrtcGetPTX(void *, char *), nvrtcGetPTXSize(void *, size_t *);

#define COMPILER(library, name, ...)                                           \
    ({                                                                         \
        __typeof__(&name) entry_ = (__typeof__(&name))entry_in(library, #name); \
        entry_ != NULL ? entry_(__VA_ARGS__) : NO_NVRTC;                       \
    })
#define CALLER __builtin_return_address(0)

/* Return the NVRTC of a program, or of a caller whose program is not known. */
static void *library_of(const void *handle, void *caller, const char *name) {
    void *library = NULL;
    pthread_mutex_lock(&lock);
    for (struct program *program = programs; program != NULL && library == NULL; program = program->next)
        if (program->handle == handle)
            library = program->library;
    pthread_mutex_unlock(&lock);
    return library != NULL ? library : nvrtc_of(caller, name);
}

int nvrtcCreateProgram(void **handle, const char *source, const char *name, int count, const char *const *headers,
                       const char *const *names) {
    void *library = nvrtc_of(CALLER, "nvrtcCreateProgram");
    int result = COMPILER(library, nvrtcCreateProgram, handle, source, name, count, headers, names);
    struct program *program = result == 0 ? calloc(1, sizeof *program) : NULL;
    if (program == NULL)
        return result;
    *program = (struct program){*handle, library, strdup(source), NULL};
    pthread_mutex_lock(&lock);
    program->next = programs;
    programs = program;
    pthread_mutex_unlock(&lock);
    return result;
}

int nvrtcDestroyProgram(void **handle) {
    const void *given = handle != NULL ? *handle : NULL;
    void *library = library_of(given, CALLER, "nvrtcDestroyProgram");
    pthread_mutex_lock(&lock);
    for (struct program **at = &programs; *at != NULL; at = &(*at)->next)
        if ((*at)->handle == given) {
            struct program *program = *at;
            *at = program->next;
            free(program->source);
            free(program);
            break;
        }
    pthread_mutex_unlock(&lock);
    return COMPILER(library, nvrtcDestroyProgram, handle);
}

/* Compile with line information of the source, which does not change any instruction. */
int nvrtcCompileProgram(void *handle, int count, const char *const *options) {
    static const char *const lines[] = {"-lineinfo", "--generate-line-info", "-G", "--device-debug"};
    void *library = library_of(handle, CALLER, "nvrtcCompileProgram");
    const char **given = count >= 0 && (count == 0 || options != NULL) ? calloc(count + 1, sizeof *given) : NULL;
    int total = count;
    if (given == NULL)
        return COMPILER(library, nvrtcCompileProgram, handle, count, options);
    int has_lines = 0;
    for (int i = 0; i < count; ++i) {
        given[i] = options[i];
        for (size_t j = 0; j < sizeof lines / sizeof *lines; ++j)
            has_lines |= strcmp(options[i], lines[j]) == 0;
    }
    if (!has_lines)
        given[total++] = "-lineinfo";
    int result = COMPILER(library, nvrtcCompileProgram, handle, total, given);
    free(given);
    return result;
}

static char *source_of(const void *handle) {
    char *source = NULL;
    pthread_mutex_lock(&lock);
    for (struct program *program = programs; program != NULL && source == NULL; program = program->next)
        if (program->handle == handle && program->source != NULL)
            source = strdup(program->source);
    pthread_mutex_unlock(&lock);
    return source;
}

int nvrtcGetCUBIN(void *handle, char *code) {
    void *library = library_of(handle, CALLER, "nvrtcGetCUBIN");
    int result = COMPILER(library, nvrtcGetCUBIN, handle, code);
    size_t size = 0, ptx_size = 0;
    if (result != 0 || COMPILER(library, nvrtcGetCUBINSize, handle, &size) != 0 ||
        COMPILER(library, nvrtcGetPTXSize, handle, &ptx_size) != 0 || ptx_size < 2)
        return result;
    char *source = source_of(handle);
    size_t source_size = source != NULL ? strlen(source) : 0;
    char *text = malloc(ptx_size + source_size);
    if (text != NULL && COMPILER(library, nvrtcGetPTX, handle, text) == 0) {
        text[ptx_size - 1] = 0;
        if (source_size > 0)
            memcpy(text + ptx_size, source, source_size);
        cuda_tma_on_gpu_code(code, size, text, ptx_size + source_size);
    }
    free(text);
    free(source);
    return result;
}
