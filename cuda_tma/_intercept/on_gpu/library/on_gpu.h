/* The declarations of a library between a program and the driver of a GPU (LD_PRELOAD). Launches run on the GPU. Before
   a launch that is checked, the library copies the memory that the kernel may access into files of the session. After
   the launch, it copies the pages that have changed. A process of the session reads these files, and runs the launch on
   the simulator while the program continues. The program's own calls return the results of the driver. */
#ifndef CUDA_TMA_ON_GPU_H
#define CUDA_TMA_ON_GPU_H

#include "../../libcuda/driver.h"

#include "../../libcuda/images.h"

/* The kinds of requests have the same values in on_gpu/messages.py. */
enum {
    SAY_HELLO = 1,    /* The request has struct hello, and the reply has struct limits. */
    SAY_IMAGE = 2,    /* The request has the number of an image, and the image's bytes. */
    /* The request has a function's number, its image's number and its name. The reply has whether it is checked, and
       variables. */
    SAY_FUNCTION = 3,
    SAY_CODE = 4,     /* The request has the size of machine code, the code, its PTX, NUL, and its C++. */
    /* The request has the numbers of a function and of a launch with a first file. The reply is whether to continue. */
    SAY_BEFORE = 5,
    SAY_AFTER = 6,    /* The request has the number of a launch with a second file. */
    SAY_COUNTS = 7,   /* The request has the number of a function, and struct counts. */
    SAY_GRAPHS = 8    /* The request has the number of launches of graphs. */
};

struct hello {
    int32_t major, minor, multiprocessors, driver_version;
    char name[64];
};

struct limits {
    uint64_t most_bytes; /* A launch may reach at most this number of bytes. */
    /* For each configuration, each launch of this number is checked, or only the first launch if the number is 0. */
    uint32_t every;
    uint32_t most_configurations; /* For each kernel, at most this number of configurations is checked. */
};

struct counts {
    uint64_t launches, judged;
    /* These launches were not checked, for the reason in the name. */
    uint64_t alike, in_graphs, other_configurations, not_captured;
    uint64_t nanoseconds; /* The time is the additional time of the checked launches. */
};

enum { MOST_ALIKE = 64 };

/* The structure is a kernel or function of the program, by its handle. */
struct target {
    void *handle, *owner; /* The module or library `owner` contains the function. */
    char *name;
    uint64_t number; /* The number is 0 until the session has answered. */
    int is_kernel, is_judged;
    uint32_t parameters_count, variables_count;
    struct parameter *parameters;
    char *variables; /* Each name ends with a NUL. */
    struct counts counts;
    uint32_t configurations_count;
    uint64_t configurations[MOST_ALIKE], alike[MOST_ALIKE];
    struct target *next;
};

/* The structure is a launch in the form of the driver's interface. */
struct stated {
    uint32_t grid[3], block[3], cluster[3], shared_bytes, flags;
    void *stream;
    unsigned char *block_bytes; /* The block contains the parameters of the launch. */
    size_t block_size;
};

struct range {
    uint64_t address, size;
    unsigned char *before;
};

/* The structure is the description of a launch by Python. */
struct description {
    char *stack; /* The text is JSON. */
    size_t stack_size;
    uint64_t *blocks; /* The array contains the address and size of each block of torch's allocator. */
    size_t blocks_count;
};

/* The file symbols.c defines these functions. */
void *driver_entry(const char *name);
void *nvrtc_of(void *caller, const char *name);
void *entry_in(void *library, const char *name);

/* The file channel.c defines these functions. */
int say(uint32_t kind, const void *data, size_t size, const void *more, size_t more_size, struct bytes *reply);
int is_connected(void);
const struct limits *the_limits(void);
const char *session_folder(void);

/* The file targets.c defines these functions. */
void keep_target(void *handle, void *owner, const char *name, int is_kernel);
struct target *target_of(void *handle, int is_kernel);
void begin_target(struct target *target);
void *module_of(const struct target *target);
void each_target(void (*visit)(struct target *));
void say_counts(struct target *target);

/* The file loading.c defines these functions. */
uint64_t number_of_image(void *owner);

/* The file captures.c defines these functions. */
int is_captured(struct target *target, const struct stated *stated, uint64_t launch, struct description *known);
void write_after(uint64_t launch, CUresult result, uint64_t nanoseconds);
void end_capture(void);

/* The file launches.c defines these functions. */
uint64_t launched_graphs(void);

/* The file describing.c defines these functions. */
void describe(struct description *known);
void cuda_tma_on_gpu_code(const void *code, uint64_t size, const char *ptx, uint64_t ptx_size);

#define REAL(name)                                   \
    ({                                               \
        static void *found_;                         \
        if (found_ == NULL)                          \
            found_ = driver_entry(#name);            \
        (__typeof__(&name))found_;                   \
    })
#define CALL(name, ...) (REAL(name) != NULL ? REAL(name)(__VA_ARGS__) : NOT_SUPPORTED)

/* This library calls these entries of the driver, and does not replace them. */
CUresult cuCtxGetDevice(CUdevice *), cuCtxSynchronize(void), cuDeviceGetAttribute(int *, int, CUdevice);
CUresult cuDeviceGetName(char *, int, CUdevice), cuDriverGetVersion(int *);
CUresult cuFuncGetModule(void **, void *), cuFuncGetName(const char **, void *), cuKernelGetName(const char **, void *);
CUresult cuFuncGetParamInfo(void *, size_t, size_t *, size_t *), cuKernelGetParamInfo(void *, size_t, size_t *, size_t *);
CUresult cuKernelGetLibrary(void **, void *), cuMemGetAddressRange_v2(CUdeviceptr *, size_t *, CUdeviceptr);
CUresult cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t), cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, void *, const char *);
CUresult cuStreamIsCapturing(void *, int *), cuThreadExchangeStreamCaptureMode(int *);
CUresult cuPointerGetAttribute(void *, int, CUdeviceptr);

/* This library both replaces and calls these entries. */
CUresult cuKernelGetFunction(void **, void *);

#endif
