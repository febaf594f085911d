// Large matrix products, by cuBLASLt, which is opened when the first plan needs it.
module;
#include <cublasLt.h>
#include <cuda_runtime_api.h>

module lyo.kernel;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import :cuda_state;

namespace lyo {
namespace {

struct Library {
    decltype(&cublasLtCreate) create = nullptr;
    decltype(&cublasLtMatmul) matmul = nullptr;
    decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
    decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
    decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
    decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
    decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
    decltype(&cublasLtMatrixLayoutSetAttribute) layout_set = nullptr;
    decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
    decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
    decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
    decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
    bool complete = false;

    Library() {
        const SharedLibrary library({"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"});
        complete = library.is_open();
        const auto find = [&](auto& function, const char* name) {
            complete = library.find(function, name) && complete;
        };
        find(create, "cublasLtCreate");
        find(matmul, "cublasLtMatmul");
        find(desc_create, "cublasLtMatmulDescCreate");
        find(desc_destroy, "cublasLtMatmulDescDestroy");
        find(desc_set, "cublasLtMatmulDescSetAttribute");
        find(layout_create, "cublasLtMatrixLayoutCreate");
        find(layout_destroy, "cublasLtMatrixLayoutDestroy");
        find(layout_set, "cublasLtMatrixLayoutSetAttribute");
        find(preference_create, "cublasLtMatmulPreferenceCreate");
        find(preference_destroy, "cublasLtMatmulPreferenceDestroy");
        find(preference_set, "cublasLtMatmulPreferenceSetAttribute");
        find(heuristic, "cublasLtMatmulAlgoGetHeuristic");
    }
};

const Library& library() {
    static const Library instance;
    return instance;
}

std::unexpected<Error> failed(cublasStatus_t status, std::string_view what) {
    return fail(ErrorCode::device, "cublasLt", what, ": status ", static_cast<int>(status));
}

/// One handle a device, made once and kept.
Result<cublasLtHandle_t> handle_of(int device) {
    static std::mutex& mutex = *new std::mutex;
    static std::map<int, cublasLtHandle_t>& handles = *new std::map<int, cublasLtHandle_t>;
    const std::lock_guard lock(mutex);
    if (const auto at = handles.find(device); at != handles.end()) return at->second;
    cublasLtHandle_t handle = nullptr;
    if (const auto status = library().create(&handle); status != CUBLAS_STATUS_SUCCESS)
        return failed(status, "it cannot start");
    handles.emplace(device, handle);
    return handle;
}

struct Plan {
    cublasLtHandle_t handle = nullptr;
    cublasLtMatmulDesc_t desc = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
    bool wide = false;  // f64: the scalars are doubles

    Plan() = default;
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;
    ~Plan() {
        for (cublasLtMatrixLayout_t layout : {a, b, c})
            if (layout != nullptr) library().layout_destroy(layout);
        if (desc != nullptr) library().desc_destroy(desc);
    }
};

cudaDataType_t type_of(DType dtype) noexcept {
    switch (dtype) {
        case DType::f16:
            return CUDA_R_16F;
        case DType::bf16:
            return CUDA_R_16BF;
        case DType::f64:
            return CUDA_R_64F;
        default:
            return CUDA_R_32F;
    }
}

/// A row-major matrix as cuBLAS, which is column-major, sees its transpose: whether it must transpose it back.
struct Layout {
    bool transposed = false;
    std::int64_t rows = 0, columns = 0, leading = 0;
};
Layout layout_of(std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
                 std::int64_t column_stride) noexcept {
    // Element [r, c] of the row-major matrix is element (c, r) of the column-major one.
    if (column_stride == 1 || columns == 1) return {false, columns, rows, std::max(row_stride, columns)};
    return {true, rows, columns, std::max(column_stride, rows)};
}

}  // namespace

Result<std::shared_ptr<void>> prepare_product(const Product& product, std::span<const std::int64_t> exprs, int device) {
    const Library& lib = library();
    if (!lib.complete)
        return fail(ErrorCode::no_image, "cublasLt",
                    "the plan needs libcublasLt.so (of the CUDA toolkit), which cannot be opened");
    const auto handle = handle_of(device);
    if (!handle) return std::unexpected(handle.error());
    const auto value = [&](std::uint32_t e) { return exprs[e]; };
    const std::int64_t m = value(product.m), n = value(product.n), k = value(product.k), batch = value(product.batch);
    auto plan = std::make_shared<Plan>();
    plan->handle = *handle;
    plan->wide = product.dtype == DType::f64;
    const auto compute = plan->wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
    const auto scale = plan->wide ? CUDA_R_64F : CUDA_R_32F;
    auto status = lib.desc_create(&plan->desc, compute, scale);
    // c = a * b row-major is c' = b' * a' column-major: b comes first.
    const Layout first = layout_of(k, n, value(product.b_k), value(product.b_n));
    const Layout second = layout_of(m, k, value(product.a_m), value(product.a_k));
    const auto set_transposed = [&](cublasLtMatmulDescAttributes_t attribute, bool transposed) {
        const cublasOperation_t operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
        if (status == CUBLAS_STATUS_SUCCESS) status = lib.desc_set(plan->desc, attribute, &operation, sizeof operation);
    };
    set_transposed(CUBLASLT_MATMUL_DESC_TRANSA, first.transposed);
    set_transposed(CUBLASLT_MATMUL_DESC_TRANSB, second.transposed);
    const auto make = [&](cublasLtMatrixLayout_t& out, DType dtype, std::int64_t rows, std::int64_t columns,
                          std::int64_t leading, std::int64_t step) {
        if (status == CUBLAS_STATUS_SUCCESS)
            status = lib.layout_create(&out, type_of(dtype), static_cast<std::uint64_t>(rows),
                                       static_cast<std::uint64_t>(columns), leading);
        const auto count = static_cast<std::int32_t>(batch);
        if (status == CUBLAS_STATUS_SUCCESS && batch > 1)
            status = lib.layout_set(out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
        if (status == CUBLAS_STATUS_SUCCESS && batch > 1)
            status = lib.layout_set(out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step);
    };
    make(plan->a, product.dtype, first.rows, first.columns, first.leading, value(product.b_batch));
    make(plan->b, product.dtype, second.rows, second.columns, second.leading, value(product.a_batch));
    make(plan->c, product.result, n, m, n, m * n);
    cublasLtMatmulPreference_t preference = nullptr;
    if (status == CUBLAS_STATUS_SUCCESS) status = lib.preference_create(&preference);
    std::uint64_t workspace = product_workspace_bytes;
    // Operands are at least as aligned as their elements; what the plan knows of it is not said, so nothing more is
    // assumed.
    const auto element = static_cast<std::uint32_t>(size_of(product.dtype)),
               result = static_cast<std::uint32_t>(size_of(product.result));
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& what) {
        if (status == CUBLAS_STATUS_SUCCESS) status = lib.preference_set(preference, attribute, &what, sizeof what);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
    const auto alignment_of = [&](const Buffer& b, std::uint32_t least) -> std::uint32_t {
        // Memory begins at 16 bytes or more; where the plan adds an offset, as much as divides it.
        const auto offset = static_cast<std::uint64_t>(value(b.offset));
        return offset % 16 == 0 ? 16 : least;
    };
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(product.b, element));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(product.a, element));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(product.c, result));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(product.c, result));
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    if (status == CUBLAS_STATUS_SUCCESS)
        status =
            lib.heuristic(plan->handle, plan->desc, plan->a, plan->b, plan->c, plan->c, preference, 1, &found, &count);
    if (preference != nullptr) lib.preference_destroy(preference);
    if (status != CUBLAS_STATUS_SUCCESS || count == 0)
        return failed(status, cat("no algorithm for ", batch, " products of ", m, "x", k, " and ", k, "x", n, " ",
                                  to_string(product.dtype)));
    plan->algorithm = found.algo;
    return std::shared_ptr<void>(std::move(plan));
}

Result<> run_product(const std::shared_ptr<void>& prepared, std::uint64_t a, std::uint64_t b, std::uint64_t c,
                     void* workspace, Stream stream) {
    const Plan& plan = *static_cast<const Plan*>(prepared.get());
    const float one = 1, zero = 0;
    const double wide_one = 1, wide_zero = 0;
    const void* alpha = plan.wide ? static_cast<const void*>(&wide_one) : &one;
    const void* beta = plan.wide ? static_cast<const void*>(&wide_zero) : &zero;
    const auto pointer = [](std::uint64_t address) {
        return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
    };
    const auto status = library().matmul(plan.handle, plan.desc, alpha, pointer(b), plan.a, pointer(a), plan.b, beta,
                                         pointer(c), plan.c, pointer(c), plan.c, &plan.algorithm, workspace,
                                         product_workspace_bytes, static_cast<cudaStream_t>(stream.handle));
    if (status != CUBLAS_STATUS_SUCCESS) return failed(status, "a product failed");
    return {};
}

}  // namespace lyo
