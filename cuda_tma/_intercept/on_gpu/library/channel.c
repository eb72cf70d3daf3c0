/* The connection to the session by a socket in the session's folder. The command starts a process for each program that
   connects. */
#define _GNU_SOURCE
#include "on_gpu.h"

#include "../../libcuda/sockets.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The file on_gpu/server.py defines the same layout of requests. */
struct request {
    uint32_t kind, padding;
    uint64_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int channel = -1;
static pid_t owner; /* The owner is the process that has connected, or 0 before the connection. */
static struct limits limits;

const struct limits *the_limits(void) {
    return &limits;
}

const char *session_folder(void) {
    return getenv("CUDA_TMA_ON_GPU");
}

static void end_channel(void) {
    if (channel >= 0)
        close(channel);
    channel = -1;
}

static int exchange(uint32_t kind, const void *data, size_t size, const void *more, size_t more_size,
                    struct bytes *reply) {
    struct request request = {kind, 0, size + more_size};
    uint64_t answered;
    int is_whole = move_all(channel, &request, sizeof request, 1) && move_all(channel, (void *)data, size, 1) &&
                   move_all(channel, (void *)more, more_size, 1) && move_all(channel, &answered, sizeof answered, 0);
    unsigned char *taken = is_whole && answered < 1u << 30 ? malloc(answered + 1) : NULL;
    if (taken == NULL || !move_all(channel, taken, answered, 0)) {
        free(taken);
        end_channel();
        return 0;
    }
    if (reply != NULL)
        *reply = (struct bytes){taken, answered};
    else
        free(taken);
    return 1;
}

static void greet(void) {
    enum { MULTIPROCESSORS = 16, MAJOR = 75, MINOR = 76 };
    struct hello hello = {0};
    struct bytes reply;
    CUdevice device = 0;
    CALL(cuCtxGetDevice, &device);
    CALL(cuDeviceGetAttribute, &hello.major, MAJOR, device);
    CALL(cuDeviceGetAttribute, &hello.minor, MINOR, device);
    CALL(cuDeviceGetAttribute, &hello.multiprocessors, MULTIPROCESSORS, device);
    CALL(cuDeviceGetName, hello.name, sizeof hello.name - 1, device);
    CALL(cuDriverGetVersion, &hello.driver_version);
    if (!exchange(SAY_HELLO, &hello, sizeof hello, NULL, 0, &reply))
        return;
    if (reply.size == sizeof limits)
        memcpy(&limits, reply.data, sizeof limits);
    else
        end_channel();
    free(reply.data);
}

static void connect_once(void) {
    if (owner == getpid())
        return;
    channel = -1; /* After a fork, the connection is that of the parent. */
    owner = getpid();
    const char *folder = session_folder();
    channel = folder != NULL ? open_channel(folder) : -1;
    if (channel >= 0)
        greet();
}

int is_connected(void) {
    pthread_mutex_lock(&lock);
    connect_once();
    int found = channel >= 0;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Send a request, and wait for the reply. Return 0 without a session. */
int say(uint32_t kind, const void *data, size_t size, const void *more, size_t more_size, struct bytes *reply) {
    if (reply != NULL)
        *reply = (struct bytes){NULL, 0};
    pthread_mutex_lock(&lock);
    connect_once();
    int is_said = channel >= 0 && exchange(kind, data, size, more, more_size, reply);
    pthread_mutex_unlock(&lock);
    return is_said;
}

/* At the end of the process, send the number of launches of each kernel, and of graphs. */
__attribute__((destructor)) static void say_all_counts(void) {
    uint64_t graphs = launched_graphs();
    if (owner != getpid() || channel < 0)
        return;
    each_target(say_counts);
    if (graphs > 0)
        say(SAY_GRAPHS, &graphs, sizeof graphs, NULL, 0, NULL);
}
