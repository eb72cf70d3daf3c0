/* The modules and libraries that the program loads, with their images. A session reads an image at the first launch of
   one of its kernels. */
#define _GNU_SOURCE
#include "on_gpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WRAPPER = 0x466243B1 };

struct image {
    void *owner; /* The owner is the module or the library. */
    /* The image is in the program's own code, which is not freed. Otherwise the pointer is NULL. */
    const void *lasting;
    struct bytes bytes;
    uint64_t number; /* The number of an image is 0 until the session has received the image. */
    struct image *next;
};

static struct image *images;
static uint64_t last_number;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int is_wrapped(const void *image) {
    uint32_t magic = 0;
    if (image != NULL)
        memcpy(&magic, image, sizeof magic); /* The driver also reads the first bytes of an image. */
    return magic == WRAPPER;
}

static void keep(void *owner, const void *lasting, struct bytes bytes, uint64_t number) {
    struct image *made = calloc(1, sizeof *made);
    if (made == NULL)
        return;
    *made = (struct image){owner, lasting, bytes, number, NULL};
    pthread_mutex_lock(&lock);
    made->next = images;
    images = made;
    pthread_mutex_unlock(&lock);
}

static void keep_image(CUresult result, void **owner, const void *image) {
    struct bytes bytes = {NULL, 0};
    if (result != SUCCESS || owner == NULL)
        return;
    if (is_wrapped(image))
        keep(*owner, image, bytes, 0);
    else if (image_bytes(image, &bytes) == SUCCESS)
        keep(*owner, NULL, bytes, 0);
}

static void keep_file(CUresult result, void **owner, const char *path) {
    struct bytes bytes;
    if (result == SUCCESS && owner != NULL && file_bytes(path, &bytes) == SUCCESS)
        keep(*owner, NULL, bytes, 0);
}

static void forget(void *owner) {
    pthread_mutex_lock(&lock);
    for (struct image **at = &images; *at != NULL;) {
        struct image *image = *at;
        if (image->owner != owner) {
            at = &image->next;
            continue;
        }
        *at = image->next;
        free(image->bytes.data);
        free(image);
    }
    pthread_mutex_unlock(&lock);
    keep_target(NULL, owner, NULL, 0);
}

/* Return the number of the image of a module or library after the session has received it, or 0 if it is not known. */
uint64_t number_of_image(void *owner) {
    pthread_mutex_lock(&lock);
    struct image *image = images;
    while (image != NULL && image->owner != owner)
        image = image->next;
    if (image != NULL && image->number == 0) {
        struct bytes bytes = image->bytes;
        if (image->lasting == NULL || image_bytes(image->lasting, &bytes) == SUCCESS) {
            image->number = ++last_number;
            say(SAY_IMAGE, &image->number, sizeof image->number, bytes.data, bytes.size, NULL);
        }
        if (image->lasting != NULL)
            free(bytes.data);
    }
    uint64_t number = image != NULL ? image->number : 0;
    pthread_mutex_unlock(&lock);
    return number;
}

/* ---- the replaced entries ---- */

CUresult cuModuleLoad(void **module, const char *path) {
    CUresult result = CALL(cuModuleLoad, module, path);
    keep_file(result, module, path);
    return result;
}

CUresult cuModuleLoadData(void **module, const void *image) {
    CUresult result = CALL(cuModuleLoadData, module, image);
    keep_image(result, module, image);
    return result;
}

CUresult cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
    CUresult result = CALL(cuModuleLoadDataEx, module, image, count, options, values);
    keep_image(result, module, image);
    return result;
}

CUresult cuModuleLoadFatBinary(void **module, const void *image) {
    CUresult result = CALL(cuModuleLoadFatBinary, module, image);
    keep_image(result, module, image);
    return result;
}

CUresult cuLibraryLoadData(void **library, const void *code, int *options, void **values, unsigned count,
                           int *library_options, void **library_values, unsigned library_count) {
    CUresult result = CALL(cuLibraryLoadData, library, code, options, values, count, library_options, library_values,
                           library_count);
    keep_image(result, library, code);
    return result;
}

CUresult cuLibraryLoadFromFile(void **library, const char *path, int *options, void **values, unsigned count,
                               int *library_options, void **library_values, unsigned library_count) {
    CUresult result = CALL(cuLibraryLoadFromFile, library, path, options, values, count, library_options,
                           library_values, library_count);
    keep_file(result, library, path);
    return result;
}

CUresult cuModuleUnload(void *module) {
    forget(module);
    return CALL(cuModuleUnload, module);
}

CUresult cuLibraryUnload(void *library) {
    forget(library);
    return CALL(cuLibraryUnload, library);
}

CUresult cuLibraryGetModule(void **module, void *library) {
    CUresult result = CALL(cuLibraryGetModule, module, library);
    uint64_t number = result == SUCCESS && module != NULL ? number_of_image(library) : 0;
    if (number != 0)
        keep(*module, NULL, (struct bytes){NULL, 0}, number);
    return result;
}

CUresult cuModuleGetFunction(void **function, void *module, const char *name) {
    CUresult result = CALL(cuModuleGetFunction, function, module, name);
    if (result == SUCCESS)
        keep_target(*function, module, name, 0);
    return result;
}

CUresult cuLibraryGetKernel(void **kernel, void *library, const char *name) {
    CUresult result = CALL(cuLibraryGetKernel, kernel, library, name);
    if (result == SUCCESS)
        keep_target(*kernel, library, name, 1);
    return result;
}

CUresult cuLibraryEnumerateKernels(void **kernels, unsigned count, void *library) {
    CUresult result = CALL(cuLibraryEnumerateKernels, kernels, count, library);
    const char *name = NULL;
    for (unsigned i = 0; result == SUCCESS && i < count; ++i)
        if (kernels[i] != NULL && CALL(cuKernelGetName, &name, kernels[i]) == SUCCESS)
            keep_target(kernels[i], library, name, 1);
    return result;
}

CUresult cuKernelGetFunction(void **function, void *kernel) {
    CUresult result = CALL(cuKernelGetFunction, function, kernel);
    struct target *known = result == SUCCESS ? target_of(kernel, 1) : NULL;
    if (known != NULL && *function != kernel)
        keep_target(*function, known->owner, known->name, 0);
    return result;
}
