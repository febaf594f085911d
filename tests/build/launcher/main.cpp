#include <cstdio>

import lab.middle;

// The first number depends on the layout of an exported struct, the second on the body of an exported template, the
// third on an exported constant.
int main() {
    const Extent extent{};
    std::printf("%d %d %d\n", static_cast<int>(sizeof extent), scaled(10), depth);
}
