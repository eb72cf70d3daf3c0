/* A connection to the command, which is a socket in the folder of the command's session. */
#ifndef CUDA_TMA_SOCKETS_H
#define CUDA_TMA_SOCKETS_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Send or receive all bytes. Return 0 if the other end is closed. */
static inline int move_all(int channel, void *data, size_t size, int is_sent) {
    for (char *next = data; size > 0;) {
        ssize_t count = is_sent ? send(channel, next, size, MSG_NOSIGNAL) : recv(channel, next, size, 0);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return 0;
        next += count;
        size -= count;
    }
    return 1;
}

/* Connect to the socket `server` of a folder. Return -1 on failure. The path of a socket has at most 107 bytes, and the
   path of a folder may have more. */
static inline int open_channel(const char *folder) {
    int directory = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/server", directory);
    int is_open = directory >= 0 && made >= 0 && connect(made, (struct sockaddr *)&address, sizeof address) == 0;
    if (directory >= 0)
        close(directory);
    if (!is_open && made >= 0)
        close(made);
    return is_open ? made : -1;
}

#endif
