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
    SAY_HELLO = 1,    /* A request SAY_HELLO has struct hello, and the reply has struct limits. */
    SAY_IMAGE = 2,    /* A request SAY_IMAGE has the number of an image, and the image's bytes. */
    /* A request SAY_FUNCTION has a function's number, its image's number and its name. The reply has whether the
       function is checked, and variables. */
    SAY_FUNCTION = 3,
    SAY_CODE = 4,     /* A request SAY_CODE has the size of machine code, the code, its PTX, NUL, and its C++. */
    /* A request SAY_BEFORE has the numbers of a function and of a launch with a first file. The reply is whether to
       continue. */
    SAY_BEFORE = 5,
    SAY_AFTER = 6,    /* A request SAY_AFTER has the number of a launch with a second file. */
    SAY_COUNTS = 7,   /* A request SAY_COUNTS has the number of a function, and struct counts. */
    SAY_GRAPHS = 8    /* A request SAY_GRAPHS has the number of launches of graphs. */
};

struct hello {
    int32_t major, minor, multiprocessors, driver_version;
    char name[64];
};

struct limits {
    uint64_t most_bytes; /* most_bytes limits the memory that a launch may reach. */
    /* For each configuration, every launch whose number is a multiple of `every` is checked, or only the first launch
       if `every` is 0. */
    uint32_t every;
    uint32_t most_configurations; /* most_configurations limits the checked configurations of a kernel. */
};

struct counts {
    uint64_t launches, judged;
    /* The counts are those of launches that were not checked, for the reason in the name of the count. */
    uint64_t alike, in_graphs, other_configurations, not_captured;
    uint64_t nanoseconds; /* The time is the additional time of the checked launches. */
};

enum { MOST_ALIKE = 64 };

/* A struct target is a kernel or function of the program, by its handle. */
struct target {
    void *handle, *owner; /* The module or library `owner` contains the function. */
    char *name;
    uint64_t number; /* The number of a kernel is 0 until the session has answered. */
    int is_kernel, is_judged;
    uint32_t parameters_count, variables_count;
    struct parameter *parameters;
    char *variables; /* Each name ends with a NUL. */
    struct counts counts;
    uint32_t configurations_count;
    uint64_t configurations[MOST_ALIKE], alike[MOST_ALIKE];
    struct target *next;
};

/* A struct stated is a launch in the form of the driver's interface. */
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

/* A struct description is the description of a launch by Python. */
struct description {
    char *stack; /* The stack is JSON. */
    size_t stack_size;
    uint64_t *blocks; /* The array contains the address and size of each block of torch's allocator. */
    size_t blocks_count;
};

/* The file symbols.c defines the functions below. */
void *driver_entry(const char *name);
void *nvrtc_of(void *caller, const char *name);
void *entry_in(void *library, const char *name);

/* The file channel.c defines the functions below. */
int say(uint32_t kind, const void *data, size_t size, const void *more, size_t more_size, struct bytes *reply);
int is_connected(void);
const struct limits *the_limits(void);
const char *session_folder(void);

/* The file targets.c defines the functions below. */
void keep_target(void *handle, void *owner, const char *name, int is_kernel);
struct target *target_of(void *handle, int is_kernel);
void begin_target(struct target *target);
void *module_of(const struct target *target);
void each_target(void (*visit)(struct target *));
void say_counts(struct target *target);

/* The file loading.c defines the functions below. */
uint64_t number_of_image(void *owner);

/* The file captures.c defines the functions below. */
int is_captured(struct target *target, const struct stated *stated, uint64_t launch, struct description *known);
void write_after(uint64_t launch, CUresult result, uint64_t nanoseconds);
void end_capture(void);

/* The file launches.c defines the functions below. */
uint64_t launched_graphs(void);

/* The file describing.c defines the functions below. */
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

/* The library calls the entries of the driver below, and does not replace them. */
CUresult cuCtxGetDevice(CUdevice *), cuCtxSynchronize(void), cuDeviceGetAttribute(int *, int, CUdevice);
CUresult cuDeviceGetName(char *, int, CUdevice), cuDriverGetVersion(int *);
CUresult cuFuncGetModule(void **, void *), cuFuncGetName(const char **, void *), cuKernelGetName(const char **, void *);
CUresult cuFuncGetParamInfo(void *, size_t, size_t *, size_t *), cuKernelGetParamInfo(void *, size_t, size_t *, size_t *);
CUresult cuKernelGetLibrary(void **, void *), cuMemGetAddressRange_v2(CUdeviceptr *, size_t *, CUdeviceptr);
CUresult cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t), cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, void *, const char *);
CUresult cuStreamIsCapturing(void *, int *), cuThreadExchangeStreamCaptureMode(int *);
CUresult cuPointerGetAttribute(void *, int, CUdeviceptr);

/* The library both replaces and calls the entries of the driver below. */
CUresult cuKernelGetFunction(void **, void *);

#endif
