/* The declarations that the files of the driver library share. The library needs no GPU.

   The library stores handles, memory and streams in C, because a program calls these entries thousands of times, from
   any thread. For modules, launches and tensor maps it calls Python through one function: `ask` takes and returns
   bytes. The Python of the process registers the function that answers. It has access to the stack of the launching
   script, and to the arrays that other adapters have mapped. In a program without Python, a server process answers
   (remote.c). Every launch is complete when its entry returns. */
#ifndef CUDA_TMA_DRIVER_H
#define CUDA_TMA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    DEINITIALIZED = 4,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    ALREADY_REGISTERED = 712,
    CONTEXT_IS_DESTROYED = 709,
    NOT_REGISTERED = 713,
    NOT_SUPPORTED = 801
};

/* The kinds of requests. driver/messages.py has the same values. */
enum {
    ASK_DEVICE = 1,    /* nothing -> struct device */
    ASK_ALLOCATED = 2, /* address, size, kind of memory, where its bytes lie -> the text that a leak is reported with */
    ASK_FREED = 3,     /* address */
    ASK_LOAD = 4,      /* an image -> a description of its functions and variables */
    ASK_PLACE = 5,     /* module, an address for each variable */
    ASK_UNLOAD = 6,    /* module */
    ASK_LAUNCH = 7,    /* struct launch, the bytes of the parameters */
    ASK_TENSOR_MAP = 8, /* kind of map, arguments -> 128 bytes */
    ASK_ABSENT = 9,    /* the name of an entry that this library does not have */
    ASK_MISUSE = 10,   /* kind, address, size: a wrong use of memory */
    ASK_SOURCE = 11,   /* PTX, NUL, C++ */
    ASK_ADDRESS = 12,  /* an address and a size -> the address of these bytes in this process */
    ASK_PRIVATE = 13,  /* nothing; a CUDA runtime has requested private tables of the driver */
    ASK_SKIP = 14,     /* a CUresult, the name of a kernel: the reason why its launch does not run */
    ASK_LINK = 15      /* for each input its size in 8 bytes and its bytes -> their PTX as one text, with a NUL */
};

/* The range of addresses of device memory, in this process and in its server. */
#define ARENA 0x200000000000u
#define ARENA_BYTES (1ull << 44)

/* The kinds of memory. */
enum { DEVICE_MEMORY = 0, POOL_MEMORY = 1, HOST_MEMORY = 2, MANAGED_MEMORY = 3, REGISTERED_MEMORY = 4, VARIABLE = 5, VIRTUAL_MEMORY = 6 };

/* The wrong uses of memory. */
enum { DOUBLE_FREE = 1, INVALID_FREE = 2, COPY_OUT_OF_BOUNDS = 3, USE_AFTER_FREE = 4, DESTROYED_CONTEXT = 5 };

struct bytes {
    unsigned char *data;
    size_t size;
};

enum { ATTRIBUTES = 160 };
struct device {
    uint64_t total_bytes;
    char name[64];
    int32_t attributes[ATTRIBUTES]; /* by CUdevice_attribute */
};

struct parameter {
    uint32_t offset, size;
};

struct function {
    uint32_t magic, index;
    struct module *module;
    char *name;
    int32_t attributes[16]; /* by CUfunction_attribute */
    uint32_t count;
    struct parameter *parameters;
};

struct variable {
    char *name;
    uint64_t address, size;
};

struct module {
    uint32_t magic;
    const void *context; /* the context that loaded it, or NULL for a library, which belongs to no context */
    uint64_t number;
    uint32_t functions_count, variables_count;
    struct function *functions;
    struct variable *variables;
    struct module *next;
};

/* The fixed part of ASK_LAUNCH. */
struct launch {
    uint64_t module;
    uint32_t function, flags, grid[3], block[3], cluster[3], shared_bytes;
};
enum { COOPERATIVE = 1, PROGRAMMATIC = 2 };

/* A launch in the form of the driver's interface: CUlaunchConfig, with its CUlaunchAttribute. */
struct attribute {
    uint32_t id, padding;
    union {
        uint32_t cluster[3];
        int number;
        char bytes[64];
    } value;
};

struct config {
    uint32_t grid[3], block[3], shared_bytes;
    void *stream;
    const struct attribute *attributes;
    uint32_t count;
};

/* server.c: at the first request, Python registers the function that answers */
CUresult ask(uint32_t kind, const void *data, size_t size, struct bytes *reply);
CUresult absent(const char *name);
void run_python(const char *text); /* no effect in a process without Python */
const struct device *the_device(void);
CUresult ready(void);       /* SUCCESS after cuInit */
CUresult ready_in_context(void);

/* remote.c */
CUresult ask_server(uint32_t kind, const void *data, size_t size, struct bytes *reply);
int arena_file(void); /* -1 if no server shares the memory */

/* names.c */
void *entry_named(const char *name, int version, int *is_known);

/* contexts.c */
void *current_context(void);
int is_destroyed(const void *context); /* NULL stands for the current context */

/* memory.c */
CUresult allocate(CUdeviceptr *address, size_t size, int kind);
CUresult release(CUdeviceptr address, int kind_mask);
void *readable(CUdeviceptr address, size_t size, CUresult *result);
void *anywhere(uint64_t address, size_t size, CUresult *result);
void copy_registered(int to_arena);
void misuse(uint64_t kind, uint64_t address, uint64_t size);

/* modules.c */
struct function *function_of(void *handle);

#define REQUIRE(condition, error) \
    do {                          \
        if (!(condition))         \
            return (error);       \
    } while (0)
#define CHECK(call)                    \
    do {                               \
        CUresult result_ = (call);     \
        if (result_ != SUCCESS)        \
            return result_;            \
    } while (0)

#endif
