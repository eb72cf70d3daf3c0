/* The list of the programs of NVRTC. */
#define _GNU_SOURCE
#include "programs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct program *programs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void add_program(void *handle, void *library, const char *source) {
    struct program *program = calloc(1, sizeof *program);
    if (program == NULL)
        return;
    program->handle = handle;
    program->library = library;
    program->source = strdup(source);
    pthread_mutex_lock(&lock);
    program->next = programs;
    programs = program;
    pthread_mutex_unlock(&lock);
}

struct program *find_program(const void *handle) {
    pthread_mutex_lock(&lock);
    struct program *program = programs;
    while (program != NULL && program->handle != handle)
        program = program->next;
    pthread_mutex_unlock(&lock);
    return program;
}

void remove_program(const void *handle) {
    pthread_mutex_lock(&lock);
    for (struct program **at = &programs; *at != NULL; at = &(*at)->next)
        if ((*at)->handle == handle) {
            struct program *program = *at;
            *at = program->next;
            free(program->source);
            free(program);
            break;
        }
    pthread_mutex_unlock(&lock);
}

int has_line_option(int count, const char *const *options) {
    static const char *const lines[] = {"-lineinfo", "--generate-line-info", "-G", "--device-debug"};
    for (int i = 0; i < count; ++i)
        for (size_t j = 0; j < sizeof lines / sizeof *lines; ++j)
            if (strcmp(options[i], lines[j]) == 0)
                return 1;
    return 0;
}
