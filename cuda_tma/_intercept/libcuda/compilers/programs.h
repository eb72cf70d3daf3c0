/* The programs of NVRTC with their sources, for the driver library and for the library of programs on a GPU. */
#ifndef CUDA_TMA_PROGRAMS_H
#define CUDA_TMA_PROGRAMS_H

struct program {
    void *handle;
    void *library; /* A process may have several versions of NVRTC. */
    char *source;
    int gives_ptx; /* The program gives PTX in place of machine code. */
    struct program *next;
};

#pragma GCC visibility push(hidden)
void add_program(void *handle, void *library, const char *source);
struct program *find_program(const void *handle); /* The result is NULL for a handle of no program. */
void remove_program(const void *handle);
int has_line_option(int count, const char *const *options); /* The options of a compilation request the lines. */
#pragma GCC visibility pop

#endif
