#include <cstdio>
#include <vector>
import lyo;
int main(int argc, char** argv) {
    auto artifact = lyo::Artifact::read(argv[1]);
    if (!artifact) return std::fprintf(stderr, "%s\n", artifact.error().to_string().c_str()), 1;
    auto function = lyo::hydrate(*artifact, lyo::Device::cpu());
    if (!function) return std::fprintf(stderr, "%s\n", function.error().to_string().c_str()), 1;
    std::vector<float> x(4, 1.0f);
    auto input = lyo::Tensor::borrow(x.data(), {2, 2}, lyo::DType::f32);
    auto outputs = function->call({input});
    if (!outputs) return std::fprintf(stderr, "%s\n", outputs.error().to_string().c_str()), 1;
    std::printf("%s %d\n", (*outputs)[0].to_string().c_str(), function->serialize() == artifact->bytes());
}
