/* The replacement of NVRTC. A program requests machine code, and the session receives the PTX of the machine code. */
#define _GNU_SOURCE
#include "on_gpu.h"

#include "../../libcuda/compilers/programs.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { NO_NVRTC = 5 }; /* NO_NVRTC is NVRTC_ERROR_INVALID_OPTION. */

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
    const struct program *program = find_program(handle);
    return program != NULL ? program->library : nvrtc_of(caller, name);
}

int nvrtcCreateProgram(void **handle, const char *source, const char *name, int count, const char *const *headers,
                       const char *const *names) {
    void *library = nvrtc_of(CALLER, "nvrtcCreateProgram");
    int result = COMPILER(library, nvrtcCreateProgram, handle, source, name, count, headers, names);
    if (result == 0)
        add_program(*handle, library, source);
    return result;
}

int nvrtcDestroyProgram(void **handle) {
    const void *given = handle != NULL ? *handle : NULL;
    void *library = library_of(given, CALLER, "nvrtcDestroyProgram");
    remove_program(given);
    return COMPILER(library, nvrtcDestroyProgram, handle);
}

/* Compile with line information of the source, which does not change any instruction. */
int nvrtcCompileProgram(void *handle, int count, const char *const *options) {
    void *library = library_of(handle, CALLER, "nvrtcCompileProgram");
    const char **given = count >= 0 && (count == 0 || options != NULL) ? calloc(count + 1, sizeof *given) : NULL;
    int total = count;
    if (given == NULL)
        return COMPILER(library, nvrtcCompileProgram, handle, count, options);
    for (int i = 0; i < count; ++i)
        given[i] = options[i];
    if (!has_line_option(count, options))
        given[total++] = "-lineinfo";
    int result = COMPILER(library, nvrtcCompileProgram, handle, total, given);
    free(given);
    return result;
}

int nvrtcGetCUBIN(void *handle, char *code) {
    void *library = library_of(handle, CALLER, "nvrtcGetCUBIN");
    int result = COMPILER(library, nvrtcGetCUBIN, handle, code);
    size_t size = 0, ptx_size = 0;
    if (result != 0 || COMPILER(library, nvrtcGetCUBINSize, handle, &size) != 0 ||
        COMPILER(library, nvrtcGetPTXSize, handle, &ptx_size) != 0 || ptx_size < 2)
        return result;
    const struct program *program = find_program(handle);
    const char *source = program != NULL ? program->source : NULL;
    size_t source_size = source != NULL ? strlen(source) : 0;
    char *text = malloc(ptx_size + source_size);
    if (text != NULL && COMPILER(library, nvrtcGetPTX, handle, text) == 0) {
        text[ptx_size - 1] = 0;
        if (source_size > 0)
            memcpy(text + ptx_size, source, source_size);
        cuda_tma_on_gpu_code(code, size, text, ptx_size + source_size);
    }
    free(text);
    return result;
}
