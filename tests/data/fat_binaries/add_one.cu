// nvcc 13.0 made the fat binaries next to this file. machine_code.fatbin:
//   nvcc -fatbin add_one.cu -gencode arch=compute_90,code=sm_90
// add_one_MODE.fatbin, for none, speed (LZ4) and size (zstd):
//   nvcc -fatbin add_one.cu --compress-mode=MODE -gencode arch=compute_80,code=compute_80
//     -gencode arch=compute_90,code=compute_90 -gencode arch=compute_90a,code=compute_90a
//     -gencode arch=compute_100,code=compute_100 -gencode arch=compute_80,code=sm_80
extern "C" __global__ void add_one(int *values) { values[threadIdx.x] += 1; }
