/* A CUDA runtime on the driver library, with the declarations that its files share. NVIDIA's runtime requests private
   tables from the driver (cuGetExportTable), whose contents are not documented. This runtime replaces NVIDIA's runtime
   in programs that link it as a shared library, and calls only documented entries of the driver. The runtime is in the
   file of the driver library, which programs find by both names. */
#ifndef CUDA_TMA_RUNTIME_H
#define CUDA_TMA_RUNTIME_H

#include "../libcuda/graphs/graphs.h"

typedef int cudaError;
enum {
    INVALID_CONFIGURATION = 9,
    INVALID_SYMBOL = 13,
    INVALID_DIRECTION = 21,
    INVALID_DEVICE_FUNCTION = 98,
    NO_KERNEL_IMAGE = 209
};

struct dim3 {
    unsigned x, y, z;
};

/* The file errors.c defines finish(). */
cudaError finish(cudaError result); /* finish() stores an error of this thread. */

/* The file devices.c defines begin_runtime(). */
cudaError begin_runtime(void); /* begin_runtime() loads the driver, and makes a context of this thread. */

/* The file launches.c defines the functions below. */
cudaError cudaLaunchKernel(const void *symbol, struct dim3 grid, struct dim3 block, void **values, size_t shared_bytes,
                           void *stream);

/* The file copies.c defines the functions below. */
cudaError cudaMemcpyAsync(void *target, const void *source, size_t size, int direction, void *stream);

/* The file binaries.c defines the functions below. */
cudaError find_function(const void *symbol, struct function **function);

/* Call an entry of the driver in a context. */
#define RUN(call)                                                          \
    do {                                                                   \
        cudaError begun_ = begin_runtime();                                \
        return finish(begun_ != SUCCESS ? begun_ : (cudaError)(call));     \
    } while (0)

/* Define a second name of an entry. A program that is compiled with --default-stream per-thread uses the second names.
   */
#define ALSO(entry, name) extern __typeof(entry) name __attribute__((alias(#entry)));

/* Define an entry that calls an entry of the driver. For an entry with a stream, also define the name for per-thread
   streams. */
#define ENTRY(name, parameters, call) \
    cudaError name parameters {       \
        RUN(call);                    \
    }
#define OF_STREAM(name, parameters, call) \
    ENTRY(name, parameters, call)         \
    ALSO(name, name##_ptsz)

/* The runtime calls the entries of the driver library that are declared below. */
CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuDevicePrimaryCtxRetain(void **context, CUdevice device);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
CUresult cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice device, CUdevice peer);
CUresult cuDeviceGetPCIBusId(char *id, int size, CUdevice device);
CUresult cuDeviceGetDefaultMemPool(void **pool, CUdevice device);
CUresult cuDeviceGetMemPool(void **pool, CUdevice device);
CUresult cuDeviceSetMemPool(CUdevice device, void *pool);
CUresult cuCtxSetCurrent(void *context);
CUresult cuCtxGetLimit(size_t *value, unsigned limit);
CUresult cuCtxSetLimit(unsigned limit, size_t value);
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);
CUresult cuModuleLoadData(void **module, const void *image);
CUresult cuModuleUnload(void *module);
CUresult cuModuleGetFunction(void **function, void *module, const char *name);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, void *module, const char *name);
CUresult cuFuncGetAttribute(int *value, unsigned attribute, void *function);
CUresult cuFuncSetAttribute(void *function, unsigned attribute, int value);
CUresult cuFuncGetName(const char **name, void *function);
CUresult cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *size);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, void *function, int threads, size_t shared);
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *size, void *function, int blocks, int threads);
CUresult cuOccupancyMaxPotentialClusterSize(int *size, void *function, const void *config);
CUresult cuOccupancyMaxActiveClusters(int *count, void *function, const void *config);
CUresult cuLaunchKernelEx(const struct config *config, void *function, void **values, void **extra);
CUresult cuLaunchHostFunc(void *stream, void (*function)(void *), void *data);
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned flags);
CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size, void *pool, void *stream);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemFreeHost(void *address);
CUresult cuMemHostAlloc(void **address, size_t size, unsigned flags);
CUresult cuMemHostRegister_v2(void *address, size_t size, unsigned flags);
CUresult cuMemHostUnregister(void *address);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *host, unsigned flags);
CUresult cuMemHostGetFlags(unsigned *flags, void *host);
CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total);
CUresult cuMemPoolCreate(void **pool, const void *properties);
CUresult cuMemPoolDestroy(void *pool);
CUresult cuMemPoolGetAttribute(void *pool, unsigned attribute, void *value);
CUresult cuMemPoolSetAttribute(void *pool, unsigned attribute, const void *value);
CUresult cuMemPoolTrimTo(void *pool, size_t size);
CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void *source, size_t size);
CUresult cuMemcpyDtoH_v2(void *target, CUdeviceptr source, size_t size);
CUresult cuMemcpyDtoD_v2(CUdeviceptr target, CUdeviceptr source, size_t size);
CUresult cuMemcpy(CUdeviceptr target, CUdeviceptr source, size_t size);
CUresult cuMemsetD8Async(CUdeviceptr target, uint8_t value, size_t count, void *stream);
CUresult cuMemsetD2D8Async(CUdeviceptr target, size_t pitch, uint8_t value, size_t width, size_t height, void *stream);
CUresult cuMemsetD2D16Async(CUdeviceptr target, size_t pitch, uint16_t value, size_t width, size_t height,
                            void *stream);
CUresult cuMemsetD2D32Async(CUdeviceptr target, size_t pitch, uint32_t value, size_t width, size_t height,
                            void *stream);
CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr address);
CUresult cuStreamCreateWithPriority(void **stream, unsigned flags, int priority);
CUresult cuStreamDestroy_v2(void *stream);
CUresult cuStreamSynchronize(void *stream);
CUresult cuStreamQuery(void *stream);
CUresult cuStreamWaitEvent(void *stream, void *event, unsigned flags);
CUresult cuStreamGetFlags(void *stream, unsigned *flags);
CUresult cuStreamGetPriority(void *stream, int *priority);
CUresult cuStreamGetId(void *stream, uint64_t *number);
CUresult cuStreamBeginCapture_v2(void *stream, int mode);
CUresult cuStreamEndCapture(void *stream, void **graph);
CUresult cuStreamIsCapturing(void *stream, int *status);
CUresult cuStreamGetCaptureInfo_v2(void *stream, int *status, uint64_t *number, void **graph, void ***nodes,
                                   size_t *count);
CUresult cuStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *number, void **graph, void ***nodes,
                                   void **edges, size_t *count);
CUresult cuStreamUpdateCaptureDependencies(void *stream, void *const *nodes, size_t count, unsigned flags);
CUresult cuStreamBeginCaptureToGraph(void *stream, void *graph, void *const *before, const void *edges, size_t count,
                                     int mode);
CUresult cuGraphCreate(void **graph, unsigned flags);
CUresult cuGraphClone(void **clone, void *graph);
CUresult cuGraphDestroy(void *graph);
CUresult cuGraphInstantiateWithFlags(void **executable, void *graph, uint64_t flags);
CUresult cuGraphInstantiateWithParams(void **executable, void *graph, void *given);
CUresult cuGraphUpload(void *executable, void *stream);
CUresult cuGraphLaunch(void *executable, void *stream);
CUresult cuGraphExecDestroy(void *executable);
CUresult cuGraphExecUpdate_v2(void *executable, void *graph, void *update);
CUresult cuGraphGetNodes(void *graph, void **nodes, size_t *count);
CUresult cuGraphGetRootNodes(void *graph, void **nodes, size_t *count);
CUresult cuGraphGetEdges_v2(void *graph, void **from, void **to, void *edges, size_t *count);
CUresult cuGraphNodeGetDependencies_v2(void *node, void **nodes, void *edges, size_t *count);
CUresult cuGraphNodeGetDependentNodes_v2(void *node, void **nodes, void *edges, size_t *count);
CUresult cuGraphAddDependencies_v2(void *graph, void *const *from, void *const *to, const void *edges, size_t count);
CUresult cuGraphRemoveDependencies_v2(void *graph, void *const *from, void *const *to, const void *edges,
                                      size_t count);
CUresult cuGraphNodeGetType(void *node, int *type);
CUresult cuGraphNodeFindInClone(void **found, void *node, void *clone);
CUresult cuGraphDestroyNode(void *node);
CUresult cuGraphDebugDotPrint(void *graph, const char *path, unsigned flags);
CUresult cuGraphNodeSetEnabled(void *executable, void *node, unsigned is_enabled);
CUresult cuGraphNodeGetEnabled(void *executable, void *node, unsigned *is_enabled);
CUresult cuStreamAddCallback(void *stream, void (*function)(void *, CUresult, void *), void *data, unsigned flags);
CUresult cuEventCreate(void **event, unsigned flags);
CUresult cuEventDestroy_v2(void *event);
CUresult cuEventRecordWithFlags(void *event, void *stream, unsigned flags);
CUresult cuEventSynchronize(void *event);
CUresult cuEventQuery(void *event);
CUresult cuEventElapsedTime_v2(float *milliseconds, void *first, void *last);

#endif
