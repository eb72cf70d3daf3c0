/* The declarations of a library between a program and the driver of a GPU (LD_PRELOAD).

   Launches run on the GPU. Before a launch that is checked, the library copies the memory that the kernel may access,
   and after the launch the pages that have changed, into files of the session. A process of the session reads these
   files, and runs the launch on the simulator while the program continues. The program's own calls return the results
   of the driver. */
#ifndef CUDA_TMA_ON_GPU_H
#define CUDA_TMA_ON_GPU_H

#include "../../libcuda/driver.h"

#include "../../libcuda/images.h"

/* The kinds of requests. on_gpu/messages.py has the same values. */
enum {
    SAY_HELLO = 1,    /* struct hello -> struct limits */
    SAY_IMAGE = 2,    /* the number of the image, its bytes */
    SAY_FUNCTION = 3, /* its number, that of its image, its name -> whether it is judged, the names of its variables */
    SAY_CODE = 4,     /* the size of machine code, the code, its PTX, NUL, its C++ */
    SAY_BEFORE = 5,   /* the number of a function and of a launch with a first file -> whether to continue */
    SAY_AFTER = 6,    /* the number of a launch with a second file */
    SAY_COUNTS = 7,   /* the number of a function, struct counts */
    SAY_GRAPHS = 8    /* the number of launches of graphs */
};

struct hello {
    int32_t major, minor, multiprocessors, driver_version;
    char name[64];
};

struct limits {
    uint64_t most_bytes; /* that a launch may reach */
    uint32_t every;      /* of a configuration, each launch of this number is judged; 0 for the first alone */
    uint32_t most_configurations; /* the limit for a kernel */
};

struct counts {
    uint64_t launches, judged;
    uint64_t alike, in_graphs, other_configurations, not_captured; /* launches that were not judged, by the reason */
    uint64_t nanoseconds; /* the additional time of the checked launches */
};

enum { MOST_ALIKE = 64 };

/* A kernel or function of the program, by its handle. */
struct target {
    void *handle, *owner; /* the module or library that contains it */
    char *name;
    uint64_t number; /* 0 until the session has answered */
    int is_kernel, is_judged;
    uint32_t parameters_count, variables_count;
    struct parameter *parameters;
    char *variables; /* names, each with its NUL */
    struct counts counts;
    uint32_t configurations_count;
    uint64_t configurations[MOST_ALIKE], alike[MOST_ALIKE];
    struct target *next;
};

/* A launch in the form of the driver's interface. */
struct stated {
    uint32_t grid[3], block[3], cluster[3], shared_bytes, flags;
    void *stream;
    unsigned char *block_bytes; /* its parameters */
    size_t block_size;
};

struct range {
    uint64_t address, size;
    unsigned char *before;
};

/* The description of a launch by Python. */
struct description {
    char *stack; /* JSON */
    size_t stack_size;
    uint64_t *blocks; /* address and size of each block of torch's allocator */
    size_t blocks_count;
};

/* symbols.c */
void *driver_entry(const char *name);
void *nvrtc_of(void *caller, const char *name);
void *entry_in(void *library, const char *name);

/* channel.c */
int say(uint32_t kind, const void *data, size_t size, const void *more, size_t more_size, struct bytes *reply);
int is_connected(void);
const struct limits *the_limits(void);
const char *session_folder(void);

/* targets.c */
void keep_target(void *handle, void *owner, const char *name, int is_kernel);
struct target *target_of(void *handle, int is_kernel);
void begin_target(struct target *target);
void *module_of(const struct target *target);
void each_target(void (*visit)(struct target *));
void say_counts(struct target *target);

/* loading.c */
uint64_t number_of_image(void *owner);

/* captures.c */
int is_captured(struct target *target, const struct stated *stated, uint64_t launch, struct description *known);
void write_after(uint64_t launch, CUresult result, uint64_t nanoseconds);
void end_capture(void);

/* launches.c */
uint64_t launched_graphs(void);

/* describing.c */
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

/* Entries of the driver that this library calls and does not replace. */
CUresult cuCtxGetDevice(CUdevice *), cuCtxSynchronize(void), cuDeviceGetAttribute(int *, int, CUdevice);
CUresult cuDeviceGetName(char *, int, CUdevice), cuDriverGetVersion(int *);
CUresult cuFuncGetModule(void **, void *), cuFuncGetName(const char **, void *), cuKernelGetName(const char **, void *);
CUresult cuFuncGetParamInfo(void *, size_t, size_t *, size_t *), cuKernelGetParamInfo(void *, size_t, size_t *, size_t *);
CUresult cuKernelGetLibrary(void **, void *), cuMemGetAddressRange_v2(CUdeviceptr *, size_t *, CUdeviceptr);
CUresult cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t), cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, void *, const char *);
CUresult cuStreamIsCapturing(void *, int *), cuThreadExchangeStreamCaptureMode(int *);
CUresult cuPointerGetAttribute(void *, int, CUdeviceptr);

/* Entries that this library both replaces and calls. */
CUresult cuKernelGetFunction(void **, void *);

#endif
