// wrong: race, missing-proxy-fence
// Even blocks add their tile by a TMA reduction, and odd blocks add the bias to the same tile with an ordinary load and store. Updates are lost (PTX ISA, cp.reduce.async.bulk.tensor is relaxed.gpu per element; a weak read-modify-write conflicts with it).
// launch: {"grid": [4], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [4, 16], "dtype": "float32"}, {"map": 0, "box_dim": [4, 16], "swizzle": "NONE"}]}
struct alignas(64) tensor_map { unsigned char opaque[128]; };

extern "C" __global__ void kernel(float* acc, const __grid_constant__ tensor_map map) {
  __shared__ alignas(128) float part[64];
  const int t = threadIdx.x;
  if (blockIdx.x % 2) {
    acc[t] += 0.5f;  // <-- here
    return;
  }
  part[t] = t + blockIdx.x;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %1}], [%2];"  // <-- here
                 ::"l"(&map), "r"(0), "r"((unsigned)__cvta_generic_to_shared(part)) : "memory");  // <-- here
    asm volatile("cp.async.bulk.commit_group;");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
