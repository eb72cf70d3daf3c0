/* The interface of NVRTC, in front of the real library. A script that requests machine code receives PTX, because the
   simulator runs PTX. cuda.bindings finds these entries first if the driver library is loaded before NVRTC. Otherwise
   cuda.pathfinder returns this library in place of NVRTC (startup/cuda_tma_nvrtc.py). Line information is always on.
   Python keeps the C++ of each PTX, so that a finding contains the line of the script. */
#define _GNU_SOURCE
#include "../driver.h"
#include "programs.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* NO_NVRTC is NVRTC_ERROR_INVALID_OPTION, and OUT_OF_HOST_MEMORY is NVRTC_ERROR_OUT_OF_MEMORY. */
enum { NO_NVRTC = 5, OUT_OF_HOST_MEMORY = 1 };

static void *library;

/* Store the library of NVRTC from the result of dlopen. */
void cuda_tma_nvrtc(void *handle) {
    library = handle;
}

typedef uintptr_t (*entry)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static uintptr_t call(const char *name, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f) {
    if (library == NULL)
        run_python("try: __import__('cuda.pathfinder', fromlist=['x']).load_nvidia_dynamic_lib('nvrtc')\n"
                   /* The Python text stores the library. If the library is absent, the caller returns the error. */
                   "except Exception: pass");
    entry function = (entry)dlsym(library != NULL ? library : RTLD_NEXT, name);
    return function != NULL ? function(a, b, c, d, e, f) : NO_NVRTC;
}

#define FORWARD(name)                                                                                     \
    uintptr_t name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f) {        \
        return call(#name, a, b, c, d, e, f);                                                             \
    }
FORWARD(nvrtcAddNameExpression)
FORWARD(nvrtcBundledHeadersInfo)
FORWARD(nvrtcGetBundledHeadersInfo)
FORWARD(nvrtcGetLTOIR)
FORWARD(nvrtcGetLTOIRSize)
FORWARD(nvrtcGetLoweredName)
FORWARD(nvrtcGetNVVM)
FORWARD(nvrtcGetNVVMSize)
FORWARD(nvrtcGetNumSupportedArchs)
FORWARD(nvrtcGetOptiXIR)
FORWARD(nvrtcGetOptiXIRSize)
FORWARD(nvrtcGetPCHCreateStatus)
FORWARD(nvrtcGetPCHHeapSize)
FORWARD(nvrtcGetPCHHeapSizeRequired)
FORWARD(nvrtcGetPTX)
FORWARD(nvrtcGetPTXSize)
FORWARD(nvrtcGetProgramLog)
FORWARD(nvrtcGetProgramLogSize)
FORWARD(nvrtcGetSupportedArchs)
FORWARD(nvrtcGetTileIR)
FORWARD(nvrtcGetTileIRSize)
FORWARD(nvrtcInstallBundledHeaders)
FORWARD(nvrtcRemoveBundledHeaders)
FORWARD(nvrtcSetFlowCallback)
FORWARD(nvrtcSetPCHHeapSize)
FORWARD(nvrtcVersion)

const char *nvrtcGetErrorString(int result) {
    uintptr_t found = call("nvrtcGetErrorString", result, 0, 0, 0, 0, 0);
    return found == NO_NVRTC ? "NVRTC is not installed" : (const char *)found;
}

int nvrtcCreateProgram(void **handle, const char *source, const char *name, int count, const char *const *headers,
                       const char *const *names) {
    int result = call("nvrtcCreateProgram", (uintptr_t)handle, (uintptr_t)source, (uintptr_t)name, count,
                      (uintptr_t)headers, (uintptr_t)names);
    if (result == 0)
        add_program(*handle, NULL, source);
    return result;
}

int nvrtcDestroyProgram(void **handle) {
    if (handle != NULL)
        remove_program(*handle);
    return call("nvrtcDestroyProgram", (uintptr_t)handle, 0, 0, 0, 0, 0);
}

/* Pass the PTX and the C++ of a program to Python. */
static void remember(const struct program *program) {
    size_t size = 0;
    uintptr_t handle = (uintptr_t)program->handle;
    if (call("nvrtcGetPTXSize", handle, (uintptr_t)&size, 0, 0, 0, 0) != 0 || size < 2 || program->source == NULL)
        return;
    size_t source_size = strlen(program->source);
    char *data = malloc(size + source_size);
    if (data != NULL && call("nvrtcGetPTX", handle, (uintptr_t)data, 0, 0, 0, 0) == 0) {
        memcpy(data + size, program->source, source_size);
        ask(ASK_SOURCE, data, size + source_size, NULL);
    }
    free(data);
}

/* Change "sm_90a" to "compute_90a" in an option. Return a new text, or NULL if the option has no such name. */
static char *with_virtual_target(const char *option, int is_value) {
    const char *value = is_value ? option : strchr(option, '=');
    if (!is_value && strncmp(option, "--gpu-architecture=", 19) != 0 && strncmp(option, "-arch=", 6) != 0)
        return NULL;
    value += !is_value;
    if (strncmp(value, "sm_", 3) != 0)
        return NULL;
    size_t before = value - option;
    char *changed = calloc(1, strlen(option) + sizeof "compute_");
    if (changed == NULL)
        return NULL;
    memcpy(changed, option, before);
    strcpy(changed + before, "compute_");
    strcat(changed, value + 3);
    return changed;
}

static int is_one_of(const char *option, const char *const *names, int count) {
    for (int i = 0; i < count; ++i)
        if (strcmp(option, names[i]) == 0)
            return 1;
    return 0;
}

int nvrtcCompileProgram(void *handle, int count, const char *const *options) {
    static const char *const targets[] = {"-arch", "--gpu-architecture"};
    struct program *program = find_program(handle);
    int total = count;
    if (program == NULL || count < 0 || (count > 0 && options == NULL))
        return call("nvrtcCompileProgram", (uintptr_t)handle, count, (uintptr_t)options, 0, 0, 0);
    const char **given = calloc(count + 1, sizeof *given);
    char **changed = calloc(count + 1, sizeof *changed);
    if (given == NULL || changed == NULL)
        return OUT_OF_HOST_MEMORY;
    for (int i = 0; i < count; ++i) {
        changed[i] = with_virtual_target(options[i], i > 0 && is_one_of(options[i - 1], targets, 2));
        program->gives_ptx |= changed[i] != NULL;
        given[i] = changed[i] != NULL ? changed[i] : options[i];
    }
    if (!has_line_option(count, options))
        given[total++] = "-lineinfo";
    int result = call("nvrtcCompileProgram", (uintptr_t)handle, total, (uintptr_t)given, 0, 0, 0);
    for (int i = 0; i < count; ++i)
        free(changed[i]);
    free(changed);
    free(given);
    if (result == 0)
        remember(program);
    return result;
}

int nvrtcGetCUBINSize(void *handle, size_t *size) {
    const struct program *program = find_program(handle);
    int gives_ptx = program != NULL && program->gives_ptx;
    return call(gives_ptx ? "nvrtcGetPTXSize" : "nvrtcGetCUBINSize", (uintptr_t)handle, (uintptr_t)size, 0, 0, 0, 0);
}

int nvrtcGetCUBIN(void *handle, char *code) {
    const struct program *program = find_program(handle);
    int gives_ptx = program != NULL && program->gives_ptx;
    return call(gives_ptx ? "nvrtcGetPTX" : "nvrtcGetCUBIN", (uintptr_t)handle, (uintptr_t)code, 0, 0, 0, 0);
}
