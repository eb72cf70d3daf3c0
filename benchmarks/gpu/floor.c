/* The floor of the benchmarks, which is the time of the driver and of torch's DLPack export when C calls only these
   functions. Each function makes `count` calls, and returns the nanoseconds of one call, or the negative error of a
   failed call. The file compiles without CUDA and Python, because it opens libcuda at run time, and contains the few
   prototypes (cuda.h, CUDA 13.5; dlpack.h, DLPack 1.3; Python's C API). Load it with ctypes.PyDLL, which holds the GIL.
   */

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef int CUresult;

typedef struct {
    uint32_t grid_dim[3], block_dim[3], shared_mem_bytes;
    void *stream;
    void *attributes;
    uint32_t attribute_count;
} LaunchConfig;

typedef struct {
    void *function;
    uint32_t grid_dim[3], block_dim[3], shared_mem_bytes;
    void **arguments, **extra, *kernel, *context;
} NodeParams; /* The driver's name of the structure is CUDA_KERNEL_NODE_PARAMS_v2. */

typedef struct {
    uint32_t data_type, rank;
    void *global_address;
    uint64_t global_dim[5], global_strides[5];
    uint32_t box_dim[5], element_strides[5];
    uint32_t interleave, swizzle, l2_promotion, oob_fill;
} Tiled;

typedef struct Managed {
    uint32_t major, minor;
    void *manager_ctx;
    void (*deleter)(struct Managed *);
} Managed; /* The floor does not read the remaining fields. */

typedef struct {
    uint32_t major, minor;
    void *previous, *managed_tensor_allocator;
    int (*managed_tensor_from_py_object_no_sync)(void *, Managed **);
} ExchangeAPI; /* The floor does not call the remaining functions. */

static CUresult (*encode_tiled)(void *, uint32_t, uint32_t, void *, const uint64_t *, const uint64_t *,
                                const uint32_t *, const uint32_t *, uint32_t, uint32_t, uint32_t, uint32_t);
static CUresult (*replace_address)(void *, void *);
static CUresult (*get_current)(void **);
static CUresult (*launch_kernel)(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, void *,
                                 void **, void **);
static CUresult (*launch_kernel_ex)(const LaunchConfig *, void *, void **, void **);
static CUresult (*set_node_params)(void *, void *, const NodeParams *);

/* Find the driver. Return NULL, or the text of an error. */
const char *open_driver(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return dlerror();
    *(void **)&encode_tiled = dlsym(library, "cuTensorMapEncodeTiled");
    *(void **)&replace_address = dlsym(library, "cuTensorMapReplaceAddress");
    *(void **)&get_current = dlsym(library, "cuCtxGetCurrent");
    *(void **)&launch_kernel = dlsym(library, "cuLaunchKernel");
    *(void **)&launch_kernel_ex = dlsym(library, "cuLaunchKernelEx");
    *(void **)&set_node_params = dlsym(library, "cuGraphExecKernelNodeSetParams_v2");
    return encode_tiled && replace_address && launch_kernel && launch_kernel_ex ? NULL : "the driver lacks a function";
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

double encode_ns(int64_t count, void *map, const Tiled *p) {
    double begin = now_ns();
    for (int64_t i = 0; i < count; i++) {
        CUresult result = encode_tiled(map, p->data_type, p->rank, p->global_address, p->global_dim, p->global_strides,
                                       p->box_dim, p->element_strides, p->interleave, p->swizzle, p->l2_promotion,
                                       p->oob_fill);
        if (result)
            return -result;
    }
    return (now_ns() - begin) / count;
}

double replace_address_ns(int64_t count, void *map, void *global_address) {
    double begin = now_ns();
    for (int64_t i = 0; i < count; i++) {
        CUresult result = replace_address(map, global_address);
        if (result)
            return -result;
    }
    return (now_ns() - begin) / count;
}

double current_context_ns(int64_t count) {
    void *context;
    double begin = now_ns();
    if (!get_current)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        CUresult result = get_current(&context);
        if (result)
            return -result;
    }
    return (now_ns() - begin) / count;
}

/* Launch one block of 32 threads without attributes. The function does not wait, so `count` must be well below 1024,
   the length of the queue. */
double launch_ns(int64_t count, void *function, void *stream, void **arguments) {
    double begin = now_ns();
    for (int64_t i = 0; i < count; i++) {
        CUresult result = launch_kernel(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL);
        if (result)
            return -result;
    }
    return (now_ns() - begin) / count;
}

double launch_ex_ns(int64_t count, void *function, void *stream, void **arguments) {
    LaunchConfig config = {{1, 1, 1}, {32, 1, 1}, 0, stream, NULL, 0};
    double begin = now_ns();
    for (int64_t i = 0; i < count; i++) {
        CUresult result = launch_kernel_ex(&config, function, arguments, NULL);
        if (result)
            return -result;
    }
    return (now_ns() - begin) / count;
}

/* Set a kernel node of an executable graph to one block of 32 threads of a CUkernel, in a context. */
double set_node_ns(int64_t count, void *graph, void *node, void *kernel, void *context, void **arguments) {
    NodeParams params = {NULL, {1, 1, 1}, {32, 1, 1}, 0, arguments, NULL, kernel, context};
    double begin = now_ns();
    if (!set_node_params)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        CUresult result = set_node_params(graph, node, &params);
        if (result)
            return -result;
    }
    return (now_ns() - begin) / count;
}

/* Export a tensor with ownership of its memory, and release the export. */
double exchange_ns(int64_t count, const ExchangeAPI *api, void *tensor) {
    double begin = now_ns();
    for (int64_t i = 0; i < count; i++) {
        Managed *managed = NULL;
        if (api->managed_tensor_from_py_object_no_sync(tensor, &managed))
            return -1;
        managed->deleter(managed);
    }
    return (now_ns() - begin) / count;
}

extern void *PyObject_VectorcallMethod(void *name, void *const *arguments, size_t count, void *keyword_names);
extern void Py_DecRef(void *);

/* Call a method without arguments, such as tensor.untyped_storage(), and release the result. */
double method_ns(int64_t count, void *object, void *name) {
    double begin = now_ns();
    for (int64_t i = 0; i < count; i++) {
        void *found = PyObject_VectorcallMethod(name, &object, 1, NULL);
        if (!found)
            return -1;
        Py_DecRef(found);
    }
    return (now_ns() - begin) / count;
}

/* Execute the steps of a C program for one launch with tensors. Export each tensor, call its storage method, and encode
   its map at the place from which the launch reads it. Launch as launch_ns does, and then release all objects. */
double launch_tensors_ns(int64_t count, const ExchangeAPI *api, void *const *tensors, int64_t tensor_count, void *name,
                         const Tiled *p, void *function, void *stream, void **arguments) {
    double begin = now_ns();
    for (int64_t i = 0; i < count; i++) {
        Managed *managed[8];
        void *storages[8];
        CUresult result = 0;
        for (int64_t t = 0; t < tensor_count && !result; t++) {
            if (api->managed_tensor_from_py_object_no_sync(tensors[t], &managed[t]))
                return -1;
            storages[t] = PyObject_VectorcallMethod(name, &tensors[t], 1, NULL);
            if (!storages[t])
                return -1;
            result = encode_tiled(arguments[t], p->data_type, p->rank, p->global_address, p->global_dim,
                                  p->global_strides, p->box_dim, p->element_strides, p->interleave, p->swizzle,
                                  p->l2_promotion, p->oob_fill);
        }
        if (!result)
            result = launch_kernel(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL);
        if (result)
            return -result;
        for (int64_t t = 0; t < tensor_count; t++) {
            managed[t]->deleter(managed[t]);
            Py_DecRef(storages[t]);
        }
    }
    return (now_ns() - begin) / count;
}
