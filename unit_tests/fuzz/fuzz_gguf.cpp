// SPDX-License-Identifier: Apache-2.0
// The input is a GGUF file; the target reads all its values and tensors.
#include <string>

#include "plugin/readers/gguf.h"
#include "unit_tests/fuzz/fuzz.h"

static uint64_t
sum_of(const xm_bytes &bytes)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < bytes.n; i++)
        sum += bytes.p[i];
    return sum;
}

/* Reads every value of a list with each getter of its type, and returns a sum of them. */
static uint64_t
ask(const xm_gguf_values &list)
{
    xm_gguf_values rest = list, inner;
    xm_slice text;
    uint64_t sum = sum_of(list.bytes), whole = 0;
    while (rest.element == XM_STRING && xm_gguf_next_text(&rest, &text, nullptr) == XM_OK)
        sum += sum_of({reinterpret_cast<const uint8_t *>(text.text), text.n});
    while (rest.element == XM_DYNAMIC &&
           xm_gguf_next_list(&rest, &inner, nullptr) == XM_OK)
        sum += ask(inner);
    require(rest.n == 0 || rest.n == list.n, "the values end where their count says");
    for (uint64_t i = 0; i < rest.n; i++) {
        bool flag;
        float real;
        int64_t number;
        xm_error of_bool = {}, of_whole = {}, of_number = {}, of_real = {};
        worked(xm_gguf_bool_at(&list, i, &flag, &of_bool), of_bool);
        if (worked(xm_gguf_u64_at(&list, i, &whole, &of_whole), of_whole))
            sum += whole;
        worked(xm_gguf_i64_at(&list, i, &number, &of_number), of_number);
        worked(xm_gguf_f32_at(&list, i, &real, &of_real), of_real);
    }
    return sum;
}

static void
check_key(const xm_gguf *g, const xm_gguf_key &k)
{
    const std::string name(k.name.text, k.name.n);
    require(xm_gguf_find_key(g, name.c_str()) == &k, "a key is found by its name");
    ask(k.value);
}

static void
check_tensor(const xm_gguf *g, const xm_gguf_tensor *t)
{
    const std::string name(t->name.text, t->name.n);
    require(xm_gguf_find_tensor(g, name.c_str()) == t, "a tensor is found by its name");
    require(t->data.n > 0, "no tensor is empty");
    sum_of(t->data);
    xm_weight w;
    xm_error err = {};
    if (worked(xm_gguf_weight(t, &w, &err), err))
        require(xm_weight_check(&w) == nullptr, "a weight is right");
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    xm_gguf *g = nullptr;
    xm_error err = {};
    enum xm_status s = xm_gguf_read_memory(bytes, n, nullptr, &g, &err);
    require(worked(s, err) == (g != nullptr), "a file comes exactly when reading worked");
    if (!g)
        return 0;
    for (uint64_t i = 0; i < g->parts[0].n_keys; i++)
        check_key(g, g->parts[0].keys[i]);
    for (uint64_t i = 0; i < g->n_tensors; i++)
        check_tensor(g, g->tensors[i]);
    xm_gguf_close(g);
    return 0;
}
