/* The launches of a program, which run on the GPU. The library captures one launch of each configuration, before and
   after the launch. */
#define _GNU_SOURCE
#include "on_gpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_PARAMETER_BYTES = 32764, MOST_ATTRIBUTES = 64, CAPTURE_IMPLICIT = 906 };

typedef CUresult (*launching)(void *data);

static pthread_rwlock_t running = PTHREAD_RWLOCK_INITIALIZER; /* No other launch runs during a capture. */
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_launch;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* ---- the selection of launches for a check ---- */

static uint64_t mixed(uint64_t hash, const void *data, size_t size) {
    for (size_t i = 0; i < size; ++i)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001B3u;
    return hash;
}

/* Compute a number of a configuration. For pointers, and for numbers that look like pointers, the number depends only
   on the alignment. */
static uint64_t configuration_of(const struct target *target, const struct stated *stated) {
    enum { POINTER_BITS = 32, ALIGNMENT = 16 };
    uint64_t hash = mixed(0xCBF29CE484222325u, stated, offsetof(struct stated, stream));
    for (uint32_t i = 0; i < target->parameters_count; ++i) {
        const struct parameter *each = &target->parameters[i];
        for (size_t at = 0; at < each->size; at += 8) {
            uint64_t word = 0;
            size_t size = each->size - at < 8 ? each->size - at : 8;
            memcpy(&word, stated->block_bytes + each->offset + at, size);
            word = word >> POINTER_BITS && size == 8 ? word % ALIGNMENT : word;
            hash = mixed(hash, &word, sizeof word);
        }
    }
    return hash;
}

/* Count a launch, and return whether the session checks it. */
static int is_chosen(struct target *target, const struct stated *stated) {
    const struct limits *limits = the_limits();
    uint64_t configuration = configuration_of(target, stated), most = limits->most_configurations;
    int is_chosen = 0;
    uint32_t at = 0;
    pthread_mutex_lock(&counting);
    while (at < target->configurations_count && target->configurations[at] != configuration)
        ++at;
    if (at < target->configurations_count) {
        ++target->alike[at];
        is_chosen = limits->every != 0 && target->alike[at] % limits->every == 0;
        target->counts.alike += !is_chosen;
    } else if (at < MOST_ALIKE && at < most) {
        target->configurations[at] = configuration;
        target->configurations_count = at + 1;
        is_chosen = 1;
    } else {
        ++target->counts.other_configurations;
    }
    pthread_mutex_unlock(&counting);
    return is_chosen;
}

static int is_in_graph(void *stream) {
    int state = 0;
    CUresult result = CALL(cuStreamIsCapturing, stream, &state);
    return result == SUCCESS ? state != 0 : result == CAPTURE_IMPLICIT;
}

/* ---- a launch ---- */

static CUresult captured(struct target *target, const struct stated *stated, struct description *known, launching go,
                         void *data) {
    uint64_t begun = now(), launch = __atomic_add_fetch(&last_launch, 1, __ATOMIC_RELAXED);
    /* The mode 2 is CU_STREAM_CAPTURE_MODE_RELAXED. No call of the function belongs to a capture of another thread. */
    int mode = 2;
    CALL(cuThreadExchangeStreamCaptureMode, &mode);
    int is_whole = CALL(cuCtxSynchronize) == SUCCESS && is_captured(target, stated, launch, known);
    CALL(cuThreadExchangeStreamCaptureMode, &mode);
    uint64_t before = now();
    CUresult result = go(data);
    CUresult ended = is_whole && result == SUCCESS ? CALL(cuCtxSynchronize) : result;
    uint64_t after = now();
    if (is_whole) {
        write_after(launch, ended, after - before);
        ++target->counts.judged;
        say(SAY_AFTER, &launch, sizeof launch, NULL, 0, NULL);
    } else {
        ++target->counts.not_captured;
    }
    end_capture();
    target->counts.nanoseconds += now() - begun - (after - before);
    if (is_whole)
        say_counts(target);
    return result;
}

/* Launch a kernel on the GPU, and pass the launch to the session. */
static CUresult judged(struct target *target, const struct stated *stated, launching go, void *data) {
    struct description known = {NULL, 0, NULL, 0};
    describe(&known);
    pthread_rwlock_wrlock(&running);
    CUresult result = captured(target, stated, &known, go, data);
    pthread_rwlock_unlock(&running);
    free(known.stack);
    free(known.blocks);
    return result;
}

static CUresult unjudged(launching go, void *data) {
    pthread_rwlock_rdlock(&running);
    CUresult result = go(data);
    pthread_rwlock_unlock(&running);
    return result;
}

/* Copy the parameters of a launch into one block. Return NULL if the driver does not report their offsets. */
static unsigned char *block_of(const struct target *target, void **values, void **extra, size_t *size) {
    enum { END = 0, POINTER = 1, SIZE = 2 };
    *size = 0;
    for (uint32_t i = 0; i < target->parameters_count; ++i) {
        size_t end = (size_t)target->parameters[i].offset + target->parameters[i].size;
        *size = end > *size ? end : *size;
    }
    unsigned char *block = *size <= MOST_PARAMETER_BYTES ? calloc(1, *size + 1) : NULL;
    const void *given = NULL;
    size_t given_size = 0;
    for (int i = 0; values == NULL && extra != NULL && i < 8 && (uintptr_t)extra[i] != END; i += 2) {
        if ((uintptr_t)extra[i] == POINTER)
            given = extra[i + 1];
        else if ((uintptr_t)extra[i] == SIZE)
            given_size = *(const size_t *)extra[i + 1];
    }
    if (block != NULL && given != NULL)
        memcpy(block, given, given_size < *size ? given_size : *size);
    for (uint32_t i = 0; block != NULL && values != NULL && i < target->parameters_count; ++i)
        if (values[i] != NULL)
            memcpy(block + target->parameters[i].offset, values[i], target->parameters[i].size);
    return block;
}

static void take_attributes(const struct config *config, struct stated *stated) {
    enum { COOPERATIVE_ID = 2, CLUSTER_ID = 4, PROGRAMMATIC_ID = 6 };
    for (uint32_t i = 0; config->attributes != NULL && i < config->count && i < MOST_ATTRIBUTES; ++i) {
        const struct attribute *attribute = &config->attributes[i];
        if (attribute->id == CLUSTER_ID)
            memcpy(stated->cluster, attribute->value.cluster, sizeof stated->cluster);
        else if (attribute->id == COOPERATIVE_ID)
            stated->flags |= attribute->value.number ? COOPERATIVE : 0;
        else if (attribute->id == PROGRAMMATIC_ID)
            stated->flags |= attribute->value.number ? PROGRAMMATIC : 0;
    }
}

static CUresult launched_with(const struct config *config, uint32_t flags, void *handle, void **values, void **extra,
                              launching go, void *data) {
    struct target *target = config != NULL && handle != NULL && is_connected() ? target_of(handle, 0) : NULL;
    struct stated stated;
    if (target == NULL)
        return go(data);
    begin_target(target);
    __atomic_add_fetch(&target->counts.launches, 1, __ATOMIC_RELAXED);
    if (!target->is_judged)
        return unjudged(go, data);
    if (is_in_graph(config->stream)) {
        __atomic_add_fetch(&target->counts.in_graphs, 1, __ATOMIC_RELAXED);
        return unjudged(go, data);
    }
    memset(&stated, 0, sizeof stated);
    memcpy(stated.grid, config->grid, sizeof stated.grid);
    memcpy(stated.block, config->block, sizeof stated.block);
    stated.shared_bytes = config->shared_bytes;
    stated.flags = flags;
    stated.stream = config->stream;
    take_attributes(config, &stated);
    stated.block_bytes = block_of(target, values, extra, &stated.block_size);
    int is_judged = stated.block_bytes != NULL && is_chosen(target, &stated);
    CUresult result = is_judged ? judged(target, &stated, go, data) : unjudged(go, data);
    free(stated.block_bytes);
    return result;
}

/* ---- the replaced entries, each for legacy and for per-thread default streams ---- */

struct simple {
    void *function;
    unsigned grid[3], block[3], shared_bytes;
    void *stream, **values, **extra;
};

struct extended {
    const struct config *config;
    void *function, **values, **extra;
};

#define LAUNCH_ENTRIES(SUFFIX)                                                                                        \
    CUresult cuLaunchKernel##SUFFIX(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,  \
                                    unsigned bz, unsigned shared, void *stream, void **values, void **extra);         \
    static CUresult go_simple##SUFFIX(void *data) {                                                                   \
        const struct simple *s = data;                                                                                \
        return CALL(cuLaunchKernel##SUFFIX, s->function, s->grid[0], s->grid[1], s->grid[2], s->block[0],             \
                    s->block[1], s->block[2], s->shared_bytes, s->stream, s->values, s->extra);                       \
    }                                                                                                                 \
    CUresult cuLaunchKernel##SUFFIX(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,  \
                                    unsigned bz, unsigned shared, void *stream, void **values, void **extra) {        \
        struct simple simple = {function, {gx, gy, gz}, {bx, by, bz}, shared, stream, values, extra};                 \
        struct config config = {{gx, gy, gz}, {bx, by, bz}, shared, stream, NULL, 0};                                 \
        return launched_with(&config, 0, function, values, extra, go_simple##SUFFIX, &simple);                        \
    }                                                                                                                 \
    CUresult cuLaunchKernelEx##SUFFIX(const struct config *config, void *function, void **values, void **extra);      \
    static CUresult go_extended##SUFFIX(void *data) {                                                                 \
        const struct extended *e = data;                                                                              \
        return CALL(cuLaunchKernelEx##SUFFIX, e->config, e->function, e->values, e->extra);                           \
    }                                                                                                                 \
    CUresult cuLaunchKernelEx##SUFFIX(const struct config *config, void *function, void **values, void **extra) {     \
        struct extended extended = {config, function, values, extra};                                                 \
        return launched_with(config, 0, function, values, extra, go_extended##SUFFIX, &extended);                     \
    }                                                                                                                 \
    CUresult cuLaunchCooperativeKernel##SUFFIX(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,    \
                                               unsigned by, unsigned bz, unsigned shared, void *stream,              \
                                               void **values);                                                        \
    static CUresult go_cooperative##SUFFIX(void *data) {                                                              \
        const struct simple *s = data;                                                                                \
        return CALL(cuLaunchCooperativeKernel##SUFFIX, s->function, s->grid[0], s->grid[1], s->grid[2], s->block[0],  \
                    s->block[1], s->block[2], s->shared_bytes, s->stream, s->values);                                 \
    }                                                                                                                 \
    CUresult cuLaunchCooperativeKernel##SUFFIX(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,    \
                                               unsigned by, unsigned bz, unsigned shared, void *stream,              \
                                               void **values) {                                                       \
        struct simple simple = {function, {gx, gy, gz}, {bx, by, bz}, shared, stream, values, NULL};                  \
        struct config config = {{gx, gy, gz}, {bx, by, bz}, shared, stream, NULL, 0};                                 \
        return launched_with(&config, COOPERATIVE, function, values, NULL, go_cooperative##SUFFIX, &simple);          \
    }
LAUNCH_ENTRIES()
LAUNCH_ENTRIES(_ptsz)

/* A graph launches kernels that this library does not capture. The session counts the graphs. */
static uint64_t graphs;

uint64_t launched_graphs(void) {
    return graphs;
}

CUresult cuGraphLaunch(void *graph, void *stream) {
    __atomic_add_fetch(&graphs, 1, __ATOMIC_RELAXED);
    return CALL(cuGraphLaunch, graph, stream);
}

CUresult cuGraphLaunch_ptsz(void *graph, void *stream) {
    __atomic_add_fetch(&graphs, 1, __ATOMIC_RELAXED);
    return CALL(cuGraphLaunch_ptsz, graph, stream);
}
