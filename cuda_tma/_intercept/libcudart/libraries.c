/* The entries for libraries that a program loads at run time, and for their kernels. */
#include "runtime.h"

CUresult cuModuleLoad(void **module, const char *path);
CUresult cuModuleGetFunctionCount(unsigned *count, void *module);
CUresult cuModuleEnumerateFunctions(void **functions, unsigned count, void *module);

cudaError cudaLibraryLoadData(void **library, const void *code, void *options, void **values, unsigned count,
                              void *library_options, void **library_values, unsigned library_count) {
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
    RUN(cuModuleLoadData(library, code));
}

cudaError cudaLibraryLoadFromFile(void **library, const char *path, void *options, void **values, unsigned count,
                                  void *library_options, void **library_values, unsigned library_count) {
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
    RUN(cuModuleLoad(library, path));
}

cudaError cudaLibraryUnload(void *library) {
    RUN(cuModuleUnload(library));
}

cudaError cudaLibraryGetKernel(void **kernel, void *library, const char *name) {
    RUN(cuModuleGetFunction(kernel, library, name));
}

cudaError cudaLibraryGetKernelCount(unsigned *count, void *library) {
    RUN(cuModuleGetFunctionCount(count, library));
}

cudaError cudaLibraryEnumerateKernels(void **kernels, unsigned count, void *library) {
    RUN(cuModuleEnumerateFunctions(kernels, count, library));
}

cudaError cudaLibraryGetGlobal(void **address, size_t *size, void *library, const char *name) {
    RUN(cuModuleGetGlobal_v2((CUdeviceptr *)address, size, library, name));
}
ALSO(cudaLibraryGetGlobal, cudaLibraryGetManaged)
