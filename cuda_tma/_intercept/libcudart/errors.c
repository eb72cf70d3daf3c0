/* The errors of the runtime by name, and the last error of each thread. */
#include "runtime.h"

#include <stddef.h>

static __thread cudaError last;

cudaError finish(cudaError result) {
    if (result != SUCCESS)
        last = result;
    return result;
}

cudaError cudaGetLastError(void) {
    cudaError result = last;
    last = SUCCESS;
    return result;
}

cudaError cudaPeekAtLastError(void) {
    return last;
}

const char *cudaGetErrorName(cudaError error) {
    switch (error) {
#define X(number, name, text) \
    case number: return #name;
#include "errors.h"
#undef X
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError error) {
    switch (error) {
#define X(number, name, text) \
    case number: return text;
#include "errors.h"
#undef X
    }
    return "unrecognized error code";
}
