/* The fat binaries of a program, with the kernels and variables that the program registers before main. The library
   loads a binary at the first use of one of its symbols. */
#include "runtime.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct binary {
    const void *image;
    void *module;
    CUresult result;
    int is_loaded;
};

struct symbol {
    const void *host; /* The calls of the program pass the stub of a kernel, or the variable of the host. */
    const char *name;
    struct binary *binary;
    struct function *function;
    int is_managed;
    struct symbol *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct symbol *symbols;

void **__cudaRegisterFatBinary(const void *image) {
    struct binary *binary = calloc(1, sizeof *binary);
    if (binary != NULL)
        binary->image = image;
    return (void **)binary;
}

static void add(void **handle, const void *host, const char *name, int is_managed) {
    struct symbol *symbol = handle != NULL && name != NULL ? calloc(1, sizeof *symbol) : NULL;
    if (symbol == NULL)
        return;
    *symbol = (struct symbol){host, name, (struct binary *)handle, NULL, is_managed, NULL};
    pthread_mutex_lock(&lock);
    symbol->next = symbols;
    symbols = symbol;
    pthread_mutex_unlock(&lock);
}

void __cudaRegisterFunction(void **binary, const void *stub, char *device_stub, const char *name, int thread_limit) {
    (void)device_stub, (void)thread_limit;
    add(binary, stub, name, 0);
}

void __cudaRegisterVar(void **binary, void *host, char *device_address, const char *name) {
    (void)device_address;
    add(binary, host, name, 0);
}

void __cudaRegisterManagedVar(void **binary, void **host, char *device_address, const char *name) {
    (void)device_address;
    add(binary, host, name, 1);
}

void __cudaRegisterHostVar(void **binary, const char *name, void *host, size_t size) {
    (void)binary, (void)name, (void)host, (void)size;
}

void __cudaRegisterFatBinaryEnd(void **binary) {
    (void)binary;
}

void __cudaUnregisterFatBinary(void **handle) {
    struct binary *binary = (struct binary *)handle;
    if (binary == NULL)
        return;
    pthread_mutex_lock(&lock);
    for (struct symbol **at = &symbols; *at != NULL;) {
        struct symbol *symbol = *at;
        if (symbol->binary != binary) {
            at = &symbol->next;
            continue;
        }
        *at = symbol->next;
        free(symbol);
    }
    pthread_mutex_unlock(&lock);
    if (binary->module != NULL)
        cuModuleUnload(binary->module);
    free(binary);
}

/* The library holds no lock during the load of a module. The load waits for Python, and the thread that runs Python may
   wait for the lock. If two threads load the same module, the library keeps the first result. */
static CUresult load(struct binary *binary) {
    if (__atomic_load_n(&binary->is_loaded, __ATOMIC_ACQUIRE))
        return binary->result;
    void *module = NULL;
    CUresult result = cuModuleLoadData(&module, binary->image);
    pthread_mutex_lock(&lock);
    int is_first = !binary->is_loaded;
    if (is_first) {
        binary->module = module;
        binary->result = result;
        __atomic_store_n(&binary->is_loaded, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    if (!is_first && module != NULL)
        cuModuleUnload(module);
    return binary->result;
}

/* The load of a binary allocates memory for each managed variable. A pointer in the host's variable contains the
   address of the memory. */
char __cudaInitModule(void **handle) {
    struct binary *binary = (struct binary *)handle;
    if (binary == NULL || begin_runtime() != SUCCESS)
        return 0;
    for (struct symbol *symbol = symbols; symbol != NULL; symbol = symbol->next) {
        CUdeviceptr address;
        if (symbol->binary != binary || !symbol->is_managed)
            continue;
        if (load(binary) == SUCCESS && cuModuleGetGlobal_v2(&address, NULL, binary->module, symbol->name) == SUCCESS)
            *(CUdeviceptr *)symbol->host = address;
    }
    return 1;
}

/* ---- symbols ---- */

static struct symbol *find(const void *host) {
    pthread_mutex_lock(&lock);
    struct symbol *symbol = symbols;
    while (symbol != NULL && symbol->host != host && (const void *)symbol != host)
        symbol = symbol->next;
    pthread_mutex_unlock(&lock);
    return symbol;
}

static void skip(const char *name, CUresult result) {
    size_t size = strlen(name);
    char *data = malloc(sizeof(uint64_t) + size);
    if (data == NULL)
        return;
    uint64_t number = result;
    memcpy(data, &number, sizeof number);
    memcpy(data + sizeof number, name, size);
    ask(ASK_SKIP, data, sizeof number + size, NULL);
    free(data);
}

/* Find the function for a kernel's stub, or for a handle that another entry returned. */
cudaError find_function(const void *host, struct function **function) {
    REQUIRE(host != NULL, INVALID_DEVICE_FUNCTION);
    struct symbol *symbol = find(host);
    if (symbol == NULL) {
        *function = function_of((void *)host);
        return *function != NULL ? SUCCESS : INVALID_DEVICE_FUNCTION;
    }
    CUresult result = load(symbol->binary);
    if (result != SUCCESS) {
        skip(symbol->name, result);
        return result;
    }
    if (symbol->function == NULL)
        REQUIRE(cuModuleGetFunction((void **)&symbol->function, symbol->binary->module, symbol->name) == SUCCESS,
                INVALID_DEVICE_FUNCTION);
    *function = symbol->function;
    return SUCCESS;
}

cudaError __cudaGetKernel(void **kernel, const void *host) {
    struct symbol *symbol = host != NULL ? find(host) : NULL;
    REQUIRE(kernel != NULL && symbol != NULL, finish(INVALID_DEVICE_FUNCTION));
    *kernel = symbol;
    return SUCCESS;
}

cudaError cudaGetKernel(void **kernel, const void *host) {
    return __cudaGetKernel(kernel, host);
}

cudaError cudaGetFuncBySymbol(void **function, const void *host) {
    REQUIRE(function != NULL, finish(INVALID_VALUE));
    RUN(find_function(host, (struct function **)function));
}

static cudaError find_variable(const void *host, CUdeviceptr *address, size_t *size) {
    struct symbol *symbol = host != NULL ? find(host) : NULL;
    REQUIRE(symbol != NULL, INVALID_SYMBOL);
    CUresult result = load(symbol->binary);
    if (result == INVALID_IMAGE) /* Python has not received the image. */
        skip(symbol->name, result);
    CHECK(result);
    return cuModuleGetGlobal_v2(address, size, symbol->binary->module, symbol->name) == SUCCESS ? SUCCESS
                                                                                                : INVALID_SYMBOL;
}

cudaError cudaGetSymbolAddress(void **address, const void *host) {
    size_t size;
    REQUIRE(address != NULL, finish(INVALID_VALUE));
    RUN(find_variable(host, (CUdeviceptr *)address, &size));
}

cudaError cudaGetSymbolSize(size_t *size, const void *host) {
    CUdeviceptr address;
    REQUIRE(size != NULL, finish(INVALID_VALUE));
    RUN(find_variable(host, &address, size));
}

static cudaError to_symbol(const void *host, const void *source, size_t size, size_t offset) {
    CUdeviceptr address;
    size_t room;
    CHECK(find_variable(host, &address, &room));
    REQUIRE(source != NULL && offset <= room && size <= room - offset, INVALID_VALUE);
    return cuMemcpy(address + offset, (CUdeviceptr)source, size);
}

static cudaError from_symbol(void *target, const void *host, size_t size, size_t offset) {
    CUdeviceptr address;
    size_t room;
    CHECK(find_variable(host, &address, &room));
    REQUIRE(target != NULL && offset <= room && size <= room - offset, INVALID_VALUE);
    return cuMemcpy((CUdeviceptr)target, address + offset, size);
}

cudaError cudaMemcpyToSymbol(const void *host, const void *source, size_t size, size_t offset) {
    RUN(to_symbol(host, source, size, offset));
}
ALSO(cudaMemcpyToSymbol, cudaMemcpyToSymbol_ptds)
ALSO(cudaMemcpyToSymbol, cudaMemcpyToSymbolAsync)
ALSO(cudaMemcpyToSymbol, cudaMemcpyToSymbolAsync_ptsz)

cudaError cudaMemcpyFromSymbol(void *target, const void *host, size_t size, size_t offset) {
    RUN(from_symbol(target, host, size, offset));
}
ALSO(cudaMemcpyFromSymbol, cudaMemcpyFromSymbol_ptds)
ALSO(cudaMemcpyFromSymbol, cudaMemcpyFromSymbolAsync)
ALSO(cudaMemcpyFromSymbol, cudaMemcpyFromSymbolAsync_ptsz)
