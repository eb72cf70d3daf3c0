/* The kernels of a program by their handles, with their names, parameters and variables, and the numbers of their
   launches. */
#define _GNU_SOURCE
#include "on_gpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 4096, MOST_PARAMETERS = 4096 };

static struct target *buckets[BUCKETS];
static uint64_t last_number;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct target **bucket_of(void *handle) {
    return &buckets[((uintptr_t)handle >> 4) * 0x9E3779B97F4A7C15u >> 52];
}

static struct target *found(void *handle) {
    struct target *target = *bucket_of(handle);
    while (target != NULL && target->handle != handle)
        target = target->next;
    return target;
}

/* Another kernel may get the same handle later, so the library keeps the counts without a handle. */
static void retire_all_of(void *owner) {
    for (size_t i = 0; i < BUCKETS; ++i)
        for (struct target *target = buckets[i]; target != NULL; target = target->next)
            if (target->owner == owner)
                target->handle = target->owner = NULL;
}

/* Store a kernel of a module or library. Without a handle, the kernels of the owner no longer exist. */
void keep_target(void *handle, void *owner, const char *name, int is_kernel) {
    pthread_mutex_lock(&lock);
    struct target *known = handle != NULL ? found(handle) : NULL;
    if (handle == NULL)
        retire_all_of(owner);
    else if (known == NULL || known->owner != owner) {
        struct target *made = calloc(1, sizeof *made);
        if (known != NULL)
            known->handle = known->owner = NULL;
        if (made != NULL) {
            made->handle = handle;
            made->owner = owner;
            made->name = strdup(name != NULL ? name : "");
            made->is_kernel = is_kernel;
            made->next = *bucket_of(handle);
            *bucket_of(handle) = made;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* Keep a kernel whose handle the program did not receive from a replaced entry. */
static void keep_unknown(void *handle, int is_kernel) {
    void *owner = NULL;
    const char *name = NULL;
    is_kernel = is_kernel || CALL(cuFuncGetModule, &owner, handle) != SUCCESS;
    if (is_kernel && CALL(cuKernelGetLibrary, &owner, handle) != SUCCESS)
        owner = NULL;
    CUresult result = is_kernel ? CALL(cuKernelGetName, &name, handle) : CALL(cuFuncGetName, &name, handle);
    keep_target(handle, owner, result == SUCCESS ? name : "", is_kernel);
}

static void take_parameters(struct target *target) {
    size_t offset, size;
    uint32_t count = 0;
    struct parameter *parameters = NULL;
    while (count < MOST_PARAMETERS) {
        CUresult result = target->is_kernel ? CALL(cuKernelGetParamInfo, target->handle, count, &offset, &size)
                                            : CALL(cuFuncGetParamInfo, target->handle, count, &offset, &size);
        struct parameter *more = result == SUCCESS ? realloc(parameters, (count + 1) * sizeof *more) : NULL;
        if (more == NULL)
            break;
        parameters = more;
        parameters[count++] = (struct parameter){offset, size};
    }
    target->parameters = parameters;
    target->parameters_count = count;
}

/* Request from the session whether the kernel is checked, and the names of the variables in its module. */
static void ask_session(struct target *target) {
    uint64_t numbers[2] = {target->number, target->owner != NULL ? number_of_image(target->owner) : 0};
    uint32_t head[2];
    struct bytes reply;
    if (!say(SAY_FUNCTION, numbers, sizeof numbers, target->name, strlen(target->name), &reply))
        return;
    if (reply.size >= sizeof head) {
        memcpy(head, reply.data, sizeof head);
        target->is_judged = head[0];
        target->variables = malloc(reply.size - sizeof head + 1);
        if (target->variables != NULL) {
            memcpy(target->variables, reply.data + sizeof head, reply.size - sizeof head);
            target->variables[reply.size - sizeof head] = 0;
            target->variables_count = head[1];
        }
    }
    free(reply.data);
}

struct target *target_of(void *handle, int is_kernel) {
    pthread_mutex_lock(&lock);
    struct target *target = found(handle);
    pthread_mutex_unlock(&lock);
    if (target == NULL) {
        keep_unknown(handle, is_kernel);
        pthread_mutex_lock(&lock);
        target = found(handle);
        pthread_mutex_unlock(&lock);
    }
    return target;
}

/* Prepare the first launch of a kernel. */
void begin_target(struct target *target) {
    static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&first);
    if (target->number == 0) {
        uint64_t number = ++last_number;
        take_parameters(target);
        target->number = number;
        ask_session(target);
    }
    pthread_mutex_unlock(&first);
}

/* Find the module in which the driver finds the variables of a kernel. */
void *module_of(const struct target *target) {
    void *module = NULL, *function = target->handle;
    if (target->is_kernel && CALL(cuKernelGetFunction, &function, target->handle) != SUCCESS)
        return NULL;
    return CALL(cuFuncGetModule, &module, function) == SUCCESS ? module : NULL;
}

void each_target(void (*visit)(struct target *)) {
    for (size_t i = 0; i < BUCKETS; ++i)
        for (struct target *target = buckets[i]; target != NULL; target = target->next)
            visit(target);
}

void say_counts(struct target *target) {
    if (target->number != 0)
        say(SAY_COUNTS, &target->number, sizeof target->number, &target->counts, sizeof target->counts, NULL);
}
