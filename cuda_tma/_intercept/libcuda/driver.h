/* The declarations that the files of the driver library share. The library needs no GPU. The library stores handles,
   memory and streams in C, because a program calls these entries thousands of times, from any thread. For modules,
   launches and tensor maps, the library calls Python through one function: `ask` takes and returns bytes. The Python of
   the process registers the function that answers. This function has access to the stack of the launching script, and
   to the arrays that other adapters have mapped. In a program without Python, a server process answers (remote.c).
   Every launch is complete when its entry returns. */
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
    PEER_UNSUPPORTED = 217,
    NOT_FOUND = 500,
    PEER_NOT_ENABLED = 705,
    ALREADY_REGISTERED = 712,
    CONTEXT_IS_DESTROYED = 709,
    NOT_REGISTERED = 713,
    NOT_SUPPORTED = 801
};

/* The kinds of requests have the same values in driver/messages.py. */
enum {
    ASK_DEVICE = 1,    /* A request ASK_DEVICE is empty, and the reply is struct device. */
    /* A request ASK_ALLOCATED has the address, size, kind and place of memory. The reply is the text of a report if the
       memory leaks. */
    ASK_ALLOCATED = 2,
    ASK_FREED = 3,     /* A request ASK_FREED has an address. */
    ASK_LOAD = 4,      /* A request ASK_LOAD is an image, and the reply describes its functions and variables. */
    ASK_PLACE = 5,     /* A request ASK_PLACE has a module, and an address for each variable. */
    ASK_UNLOAD = 6,    /* A request ASK_UNLOAD has a module. */
    ASK_LAUNCH = 7,    /* A request ASK_LAUNCH has struct launch, and the bytes of the parameters. */
    ASK_TENSOR_MAP = 8, /* A request ASK_TENSOR_MAP has a kind of map and arguments, and the reply has 128 bytes. */
    ASK_ABSENT = 9,    /* A request ASK_ABSENT has the name of an entry that the library lacks. */
    ASK_MISUSE = 10,   /* A request ASK_MISUSE has the kind, address and size of a wrong use of memory. */
    ASK_SOURCE = 11,   /* A request ASK_SOURCE has the PTX, a NUL and the C++. */
    /* A request ASK_ADDRESS has an address and a size. The reply is the address of the bytes in this process. */
    ASK_ADDRESS = 12,
    ASK_PRIVATE = 13,  /* A request ASK_PRIVATE is empty. A CUDA runtime has requested private tables of the driver. */
    /* A request ASK_SKIP has a CUresult, which is the reason why a launch does not run, and the name of the kernel. */
    ASK_SKIP = 14,
    /* A request ASK_LINK has the size of each input in 8 bytes, and its bytes. The reply is one PTX text with a NUL. */
    ASK_LINK = 15
};

/* Device memory has addresses from ARENA on, in this process and in its server. */
#define ARENA 0x200000000000u
#define ARENA_BYTES (1ull << 44)

/* DEVICE_MEMORY and the constants after it are the kinds of memory. */
enum { DEVICE_MEMORY = 0, POOL_MEMORY = 1, HOST_MEMORY = 2, MANAGED_MEMORY = 3, REGISTERED_MEMORY = 4, VARIABLE = 5, VIRTUAL_MEMORY = 6 };

/* DOUBLE_FREE and the constants after it are the wrong uses of memory. */
enum { DOUBLE_FREE = 1, INVALID_FREE = 2, COPY_OUT_OF_BOUNDS = 3, USE_AFTER_FREE = 4, DESTROYED_CONTEXT = 5 };

struct bytes {
    unsigned char *data;
    size_t size;
};

enum { ATTRIBUTES = 160 };
struct device {
    uint64_t total_bytes;
    char name[64];
    int32_t attributes[ATTRIBUTES]; /* The index is the CUdevice_attribute. */
};

struct parameter {
    uint32_t offset, size;
};

struct function {
    uint32_t magic, index;
    struct module *module;
    char *name;
    int32_t attributes[16]; /* The index is the CUfunction_attribute. */
    uint32_t count;
    struct parameter *parameters;
};

struct variable {
    char *name;
    uint64_t address, size;
};

struct module {
    uint32_t magic;
    /* The context loaded the module. The context is NULL for a library, which does not belong to a context. */
    const void *context;
    uint64_t number;
    uint32_t functions_count, variables_count;
    struct function *functions;
    struct variable *variables;
    struct module *next;
};

/* The struct launch is the fixed part of a request ASK_LAUNCH. */
struct launch {
    uint64_t module;
    uint32_t function, flags, grid[3], block[3], cluster[3], shared_bytes;
};
enum { COOPERATIVE = 1, PROGRAMMATIC = 2 };

/* The structures below describe a launch in the form of the driver's interface: CUlaunchConfig with its
   CUlaunchAttribute. */
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

/* The file server.c defines the functions below. At the first request, Python registers the function that answers. */
CUresult ask(uint32_t kind, const void *data, size_t size, struct bytes *reply);
CUresult absent(const char *name);
void run_python(const char *text); /* run_python() has no effect in a process without Python. */
const struct device *the_device(void);
CUresult ready(void);       /* ready() returns SUCCESS after cuInit. */
CUresult ready_in_context(void);

/* The file remote.c defines the functions below. */
CUresult ask_server(uint32_t kind, const void *data, size_t size, struct bytes *reply);
int arena_file(void); /* arena_file() returns -1 if no server shares the memory. */

/* The file handles.c defines these functions: zeroed memory of an object, which begins with the kind of the object in 4
   bytes, and the kind of any value, which is 0 if the value is not an object. */
void *make_handle(size_t size);
void end_handle(void *handle, size_t size);
uint32_t kind_of(const void *handle);

/* The file names.c defines entry_named(). */
void *entry_named(const char *name, int version, int *is_known);

/* The file contexts.c defines the functions below. */
void *current_context(void);
int is_destroyed(const void *context); /* The argument NULL stands for the current context. */

/* The file memory.c defines the functions below. */
CUresult allocate(CUdeviceptr *address, size_t size, int kind);
CUresult release(CUdeviceptr address, int kind_mask);
void *readable(CUdeviceptr address, size_t size, CUresult *result);
void *anywhere(uint64_t address, size_t size, CUresult *result);
void copy_registered(int to_arena);
void misuse(uint64_t kind, uint64_t address, uint64_t size);

/* The file modules.c defines function_of(). */
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
