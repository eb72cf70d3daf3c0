/* The connection to Python, and the entries that programs call first. */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DRIVER_VERSION = 13050 };

typedef CUresult (*server)(uint32_t kind, const void *data, uint64_t size, struct bytes *reply);

static server serving;
static int has_ended; /* Python has ended, and the process only releases its remaining objects. */
static pid_t owner; /* The process owns the state. The child of a fork has no state, as with the driver. */
static int is_initialized;
static struct device device;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Set the function that serves requests, or NULL at the end of the process. */
void cuda_tma_serve(server function) {
    serving = function;
    has_ended = function == NULL;
}

/* Set the reply to a request. The function that serves the request calls this function. */
void cuda_tma_reply(struct bytes *reply, const void *data, uint64_t size) {
    if (reply == NULL)
        return;
    reply->data = malloc(size ? size : 1);
    if (reply->data == NULL)
        return;
    memcpy(reply->data, data, size);
    reply->size = size;
}

static int has_python(void) {
    int (*is_initialized_python)(void) = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    return is_initialized_python != NULL && is_initialized_python();
}

void run_python(const char *text) {
    int (*ensure)(void) = dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    void (*release_state)(int) = dlsym(RTLD_DEFAULT, "PyGILState_Release");
    int (*run)(const char *, void *) = dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags");
    if (ensure == NULL || release_state == NULL || run == NULL || has_ended || !has_python())
        return;
    int state = ensure();
    run(text, NULL);
    release_state(state);
}

CUresult ask(uint32_t kind, const void *data, size_t size, struct bytes *reply) {
    if (reply != NULL)
        *reply = (struct bytes){NULL, 0};
    if (serving == NULL && !has_ended && !has_python())
        return ask_server(kind, data, size, reply);
    if (serving == NULL && !has_ended)
        run_python("__import__('cuda_tma._intercept.driver', fromlist=['attach']).attach()");
    server function = serving;
    if (function == NULL)
        return kind == ASK_FREED || kind == ASK_UNLOAD ? SUCCESS : has_ended ? DEINITIALIZED : NO_DEVICE;
    return function(kind, data, size, reply);
}

CUresult absent(const char *name) {
    ask(ASK_ABSENT, name, strlen(name), NULL);
    return NOT_SUPPORTED;
}

const struct device *the_device(void) {
    return &device;
}

CUresult ready(void) {
    return is_initialized && owner == getpid() ? SUCCESS : NOT_INITIALIZED;
}

CUresult ready_in_context(void) {
    CHECK(ready());
    return current_context() != NULL ? SUCCESS : is_destroyed(NULL) ? CONTEXT_IS_DESTROYED : INVALID_CONTEXT;
}

CUresult cuInit(unsigned flags) {
    REQUIRE(flags == 0, INVALID_VALUE);
    if (ready() == SUCCESS)
        return SUCCESS;
    REQUIRE(owner == 0 || owner == getpid(), NOT_INITIALIZED);
    struct bytes reply;
    CUresult result = ask(ASK_DEVICE, NULL, 0, &reply);
    pthread_mutex_lock(&lock);
    if (result == SUCCESS && reply.size == sizeof device) {
        memcpy(&device, reply.data, sizeof device);
        owner = getpid();
        is_initialized = 1;
    }
    pthread_mutex_unlock(&lock);
    free(reply.data);
    return result;
}

CUresult cuDriverGetVersion(int *version) {
    REQUIRE(version != NULL, INVALID_VALUE);
    *version = DRIVER_VERSION;
    return SUCCESS;
}

CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, uint64_t flags, int *status) {
    (void)flags;
    REQUIRE(name != NULL && entry != NULL, INVALID_VALUE);
    int is_known;
    *entry = entry_named(name, version, &is_known);
    if (status != NULL)
        /* The results mean: found, of a later version, and not found. */
        *status = *entry != NULL ? 0 : is_known ? 2 : 1;
    return *entry != NULL || status != NULL ? SUCCESS : NOT_FOUND;
}

CUresult cuGetProcAddress(const char *name, void **entry, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, entry, version, flags, NULL);
}

/* NVIDIA's CUDA runtime requests private tables of the driver. An import of cuda.core requests the tables too, so the
   library does not report a program with Python. */
CUresult cuGetExportTable(const void **table, const void *id) {
    (void)id;
    if (table != NULL)
        *table = NULL;
    if (!has_python())
        ask(ASK_PRIVATE, NULL, 0, NULL);
    return NOT_SUPPORTED;
}
