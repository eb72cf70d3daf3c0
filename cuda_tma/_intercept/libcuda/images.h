#ifndef CUDA_TMA_IMAGES_H
#define CUDA_TMA_IMAGES_H

#include "driver.h"

/* The caller frees the data of the image. */
CUresult image_bytes(const void *image, struct bytes *found);
CUresult file_bytes(const char *path, struct bytes *found);

#endif
