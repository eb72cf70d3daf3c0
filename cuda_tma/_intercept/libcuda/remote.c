/* The connection to a server process, for a program without Python. The command listens in the folder of its session,
   and starts a server for each process that connects. An interpreter in the program itself would need the shared
   library of Python, which most builds of Python do not have. An interpreter in the program would also share the
   symbols, signals and exit of the program. The server maps the file of this process's arena, so that both processes
   access the same bytes and a launch copies no bytes. Host memory that the program registers has a copy in the arena.
   */
#define _GNU_SOURCE
#include "driver.h"
#include "sockets.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { UNKNOWN = 999 };

/* The file driver/remote.py defines the same layout of requests. */
struct request {
    uint32_t kind, padding;
    uint64_t size;
};
struct answer {
    int32_t result;
    uint32_t printed_bytes; /* The output of the kernel has `printed_bytes`. The output is sent before the reply. */
    uint64_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int channel = -1, arena = -1;
static pid_t owner; /* The owner is the process that has connected, or 0 before the connection. */

static int send_all(const void *data, size_t size) {
    return move_all(channel, (void *)data, size, 1);
}

static int take_all(void *data, size_t size) {
    return move_all(channel, data, size, 0);
}

/* Make the file of the arena. The size of the file never changes, so that no access of the server is beyond its end. */
static int make_arena(void) {
    int file = memfd_create("cuda-tma-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0)
        return -1;
    if (ftruncate(file, ARENA_BYTES) != 0 || fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        close(file);
        return -1;
    }
    return file;
}

static int hand_over(int file) {
    char one = 1;
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.space = {0}};
    struct iovec part = {&one, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(head), &file, sizeof file);
    return sendmsg(channel, &message, MSG_NOSIGNAL) == 1;
}

static void end_channel(void) {
    if (channel >= 0)
        close(channel);
    channel = -1;
}

static void begin(void) {
    const char *folder = getenv("CUDA_TMA_SESSION");
    owner = getpid();
    channel = folder != NULL ? open_channel(folder) : -1;
    arena = channel >= 0 ? make_arena() : -1;
    if (arena < 0 || !hand_over(arena))
        end_channel();
}

int arena_file(void) {
    return arena;
}

static CUresult exchange(uint32_t kind, const void *data, size_t size, struct bytes *reply) {
    struct request request = {kind, 0, size};
    struct answer answer;
    int is_whole = send_all(&request, sizeof request) && send_all(data, size) && take_all(&answer, sizeof answer);
    unsigned char *taken = is_whole ? malloc((size_t)answer.printed_bytes + answer.size + 1) : NULL;
    if (taken == NULL || !take_all(taken, answer.printed_bytes + answer.size)) {
        free(taken);
        end_channel();
        return UNKNOWN;
    }
    fwrite(taken, 1, answer.printed_bytes, stdout);
    if (reply != NULL) {
        memmove(taken, taken + answer.printed_bytes, answer.size);
        *reply = (struct bytes){taken, answer.size};
    } else {
        free(taken);
    }
    return answer.result;
}

CUresult ask_server(uint32_t kind, const void *data, size_t size, struct bytes *reply) {
    pthread_mutex_lock(&lock);
    if (owner == 0)
        begin();
    CUresult result = channel < 0 || owner != getpid() ? NO_DEVICE : exchange(kind, data, size, reply);
    pthread_mutex_unlock(&lock);
    return result;
}
