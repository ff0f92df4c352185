/* SPDX-License-Identifier: Apache-2.0
 *
 * Every shape function, by graph text: a test states the types (and known content) of the last
 * line's results, or a part of the error text.
 */
#include "unit_tests/graph/graph_text.h"

namespace
{

/* Weights and biases of 4 experts [8,32], then the operands of the fused op from the routing on. */
#define FUSED_BY_IDS                                                                     \
    "%0 = parameter f32[t,32]\n%1 = parameter f32[t,4]\n"                                \
    "%2 = weight f32[4,8,32] f16 @1\n%3 = weight f32[4,32,8] f16 @2\n"                   \
    "%4 = weight f32[4,16,32] f16 @3\n%5 = parameter f32[t,2]\n"                         \
    "%6 = parameter i32[t,2]\n%7 = parameter f32[4,1,8]\n%8 = parameter f32[4]\n"        \
    "%9 = moe_3gemm_fused_compressed %0, "
#define FUSED_SIZES " hidden_size=32 inter_size=8 num_expert=4 top_k=2"
#define X           "%0 = parameter f32[batch,tokens,256]\n"
#define KV          "%0 = parameter f32[batch,past + tokens,8,32]\n"

/* %1 = the shape {batch, tokens, 256} of x; %2 and %3 = scalar indices 0 and 1. */
#define SHAPE X "%1 = shape_of %0\n%2 = const i64[] {0}\n%3 = const i64[] {1}\n"

const struct {
    const char *text, *types, *content; /* content NULL: not checked */
} good[] = {
    /* elementwise */
    {X "%1 = parameter f32[256]\n%2 = add %0, %1", "f32[batch,tokens,256]", "?"},
    {X "%1 = parameter f32[tokens,1]\n%2 = multiply %0, %1", "f32[batch,tokens,256]",
     nullptr},
    {"%0 = parameter f32[a]\n%1 = parameter f32[7]\n%2 = add %0, %1", "f32[7]", nullptr},
    {"%0 = parameter f32[a]\n%1 = parameter f32[b]\n%2 = add %0, %1", "f32[?0]", nullptr},
    {"%0 = const i64[2] {7, -7}\n%1 = const i64[] {2}\n%2 = divide %0, %1", "i64[2]",
     "{3, -4}"},
    {"%0 = const i64[2] {7, -7}\n%1 = const i64[] {2}\n%2 = divide %0, %1 python=false",
     "i64[2]", "{3, -3}"},
    {"%0 = const i64[2] {7, -7}\n%1 = const i64[] {4}\n%2 = mod %0, %1", "i64[2]",
     "{3, -3}"},
    {"%0 = const i64[2] {7, -7}\n%1 = const i64[] {4}\n%2 = floor_mod %0, %1", "i64[2]",
     "{3, 1}"},
    {"%0 = const i64[2] {7, -7}\n%1 = const i64[] {4}\n%2 = minimum %0, %1", "i64[2]",
     "{4, -7}"},
    {SHAPE "%4 = add %1, %1", "i64[3]", "{2*batch, 2*tokens, 512}"},
    {SHAPE "%4 = divide %1, %1", "i64[3]", "{1, 1, 1}"},
    {SHAPE "%4 = equal %1, %1", "boolean[3]", "{1, 1, 1}"},
    {SHAPE "%4 = less %1, %2", "boolean[3]", "?"},
    {"%0 = const i64[2] {1, 5}\n%1 = const i64[] {3}\n%2 = greater %0, %1", "boolean[2]",
     "{0, 1}"},
    {"%0 = const boolean[2] {1, 0}\n%1 = logical_and %0, %0", "boolean[2]", "{1, 0}"},
    {SHAPE "%4 = negative %1", "i64[3]", "{-batch, -tokens, -256}"},
    {X "%1 = swish %0", "f32[batch,tokens,256]", nullptr},
    {X "%1 = softmax %0 axis=-1", "f32[batch,tokens,256]", nullptr},
    {X "%1 = convert %0 to=f16", "f16[batch,tokens,256]", nullptr},
    {SHAPE "%4 = convert %1 to=i32", "i32[3]", "{batch, tokens, 256}"},
    {SHAPE "%4 = convert_like %1, %0", "f32[3]", "?"},
    {SHAPE "%4 = const boolean[3] {1, 0, 1}\n%5 = select %4, %1, %2", "i64[3]",
     "{batch, 0, 256}"},
    /* layout */
    {X "%1 = const i64[2] {-1, 256}\n%2 = reshape %0, %1", "f32[batch*tokens,256]",
     nullptr},
    {X "%1 = const i64[4] {0, 0, 8, -1}\n%2 = reshape %0, %1 special_zero=true",
     "f32[batch,tokens,8,32]", nullptr},
    {X "%1 = shape_value i64[3] {batch, -1, 32}\n%2 = reshape %0, %1",
     "f32[batch,8*tokens,32]", nullptr},
    {KV "%1 = shape_value i64[3] {batch, past + tokens, -1}\n%2 = reshape %0, %1",
     "f32[batch,past + tokens,256]", nullptr},
    {"%0 = const i64[1] {5}\n%1 = const i64[0] {}\n%2 = reshape %0, %1", "i64[]", "{5}"},
    {"%0 = parameter f32[1,a,1]\n%1 = const i64[1] {-1}\n%2 = squeeze %0, %1", "f32[1,a]",
     nullptr},
    {"%0 = parameter f32[1,3,1]\n%1 = squeeze %0", "f32[3]", nullptr},
    {X "%1 = const i64[2] {-1, 0}\n%2 = unsqueeze %0, %1", "f32[1,batch,tokens,256,1]",
     nullptr},
    {X "%1 = const i64[3] {2, 0, 1}\n%2 = transpose %0, %1", "f32[256,batch,tokens]",
     nullptr},
    {X "%1 = const i64[0] {}\n%2 = transpose %0, %1", "f32[256,tokens,batch]", nullptr},
    {"%0 = parameter f32[b,past,4]\n%1 = parameter f32[b,tokens,4]\n%2 = concat %0, %1 "
     "axis=1",
     "f32[b,past + tokens,4]", nullptr},
    {SHAPE "%4 = concat %1, %1 axis=0", "i64[6]",
     "{batch, tokens, 256, batch, tokens, 256}"},
    {X "%1 = const i64[] {-1}\n%2, %3 = split %0, %1 n=2",
     "f32[batch,tokens,128], f32[batch,tokens,128]", nullptr},
    {X "%1 = const i64[] {2}\n%2 = const i64[2] {64, -1}\n%3, %4 = variadic_split %0, "
       "%1, %2",
     "f32[batch,tokens,64], f32[batch,tokens,192]", nullptr},
    {SHAPE "%4, %5, %6 = split %1, %2 n=3", "i64[1], i64[1], i64[1]", "{batch}"},
    {"%0 = parameter f32[1,tokens]\n%1 = shape_value i64[3] {b, 5, tokens}\n%2 = "
     "broadcast %0, %1",
     "f32[b,5,tokens]", nullptr},
    {"%0 = parameter f32[4,tokens]\n%1 = const i64[2] {1, 1}\n"
     "%2 = broadcast %0, %1 mode=bidirectional",
     "f32[4,tokens]", nullptr},
    {"%0 = parameter f32[4]\n%1 = const i64[2] {4, 9}\n%2 = const i64[1] {0}\n"
     "%3 = broadcast %0, %1, %2 mode=explicit",
     "f32[4,9]", nullptr},
    {"%0 = const i64[] {3}\n%1 = const i64[1] {4}\n%2 = broadcast %0, %1", "i64[4]",
     "{3, 3, 3, 3}"},
    {X "%1 = const i64[4] {2, 1, 3, 1}\n%2 = tile %0, %1", "f32[2,batch,3*tokens,256]",
     nullptr},
    /* indices */
    {X "%1 = const i64[1] {-1}\n%2 = const i64[1] {9223372036854775807}\n%3 = const "
       "i64[1] {1}\n"
       "%4 = slice %0, %1, %2, %3, %3",
     "f32[batch,1,256]", nullptr},
    {KV "%1 = shape_value i64[1] {past}\n%2 = shape_value i64[1] {past + tokens}\n"
        "%3 = const i64[1] {1}\n%4 = slice %0, %1, %2, %3, %3",
     "f32[batch,tokens,8,32]", nullptr},
    {"%0 = parameter f32[10]\n%1 = const i64[1] {8}\n%2 = const i64[1] {-100}\n"
     "%3 = const i64[1] {-3}\n%4 = slice %0, %1, %2, %3",
     "f32[3]", nullptr},
    {"%0 = parameter f32[10]\n%1 = const i64[1] {1}\n%2 = const i64[1] {100}\n"
     "%3 = const i64[1] {4}\n%4 = slice %0, %1, %2, %3",
     "f32[3]", nullptr},
    {"%0 = parameter f32[10]\n%1 = const i64[1] {9}\n%2 = const i64[1] {2}\n"
     "%3 = const i64[1] {1}\n%4 = slice %0, %1, %2, %3",
     "f32[0]", nullptr},
    {X "%1 = const i64[1] {5}\n%2 = const i64[1] {9223372036854775807}\n%3 = const "
       "i64[1] {1}\n"
       "%4 = slice %0, %1, %2, %3, %3",
     "f32[batch,?0,256]", nullptr},
    {SHAPE "%4 = const i64[1] {1}\n%5 = const i64[1] {3}\n%6 = slice %1, %4, %5, %4",
     "i64[2]", "{tokens, 256}"},
    {X "%1 = const i64[3] {0, 0, 0}\n%2 = const i64[3] {0, 1, 128}\n"
       "%3 = strided_slice %0, %1, %2 begin_mask=\"1,0,0\" end_mask=\"1,0,0\" "
       "shrink_axis_mask=\"0,1,0\"",
     "f32[batch,128]", nullptr},
    {X "%1 = const i64[2] {0, 0}\n%2 = strided_slice %0, %1, %1 ellipsis_mask=\"1,0\" "
       "new_axis_mask=\"0,1\"",
     "f32[batch,tokens,256,1]", nullptr},
    {SHAPE "%4 = const i64[1] {-2}\n%5 = strided_slice %1, %4, %4 shrink_axis_mask=\"1\"",
     "i64[]", "{tokens}"},
    {X "%1 = parameter i64[a,b]\n%2 = const i64[] {1}\n%3 = gather %0, %1, %2",
     "f32[batch,a,b,256]", nullptr},
    {X "%1 = parameter i64[batch,b]\n%2 = const i64[] {1}\n%3 = gather %0, %1, %2 "
       "batch_dims=1",
     "f32[batch,b,256]", nullptr},
    {SHAPE "%4 = const i64[2] {-2, 0}\n%5 = gather %1, %4, %2", "i64[2]",
     "{tokens, batch}"},
    {SHAPE "%4 = gather %1, %3, %2", "i64[]", "{tokens}"},
    {X "%1 = parameter i64[batch,tokens,4]\n%2 = gather_elements %0, %1 axis=-1",
     "f32[batch,tokens,4]", nullptr},
    {X "%1 = parameter i64[batch,tokens,4]\n%2 = parameter f32[batch,tokens,4]\n"
       "%3 = const i64[] {2}\n%4 = scatter_elements_update %0, %1, %2, %3",
     "f32[batch,tokens,256]", nullptr},
    {X "%1 = shape_of %0 output_type=i32", "i32[3]", "{batch, tokens, 256}"},
    {"%0 = shape_value i64[] {past}\n%1 = shape_value i64[] {past + tokens}\n"
     "%2 = const i64[] {1}\n%3 = range %0, %1, %2 output_type=i64",
     "i64[tokens]", nullptr},
    {"%0 = const i64[] {1}\n%1 = const i64[] {8}\n%2 = const i64[] {3}\n"
     "%3 = range %0, %1, %2 output_type=i64",
     "i64[3]", "{1, 4, 7}"},
    {"%0 = parameter i64[]\n%1 = range %0, %0, %0 output_type=f32", "f32[?0]", nullptr},
    {"%0 = parameter i64[t,k]\n%1 = const i64[] {16}\n%2 = const f32[] {1}\n"
     "%3 = one_hot %0, %1, %2, %2 axis=-1",
     "f32[t,k,16]", nullptr},
    /* reductions and products */
    {X "%1 = const i64[1] {-1}\n%2 = reduce_mean %0, %1 keep_dims=true",
     "f32[batch,tokens,1]", nullptr},
    {SHAPE "%4 = const i64[1] {0}\n%5 = reduce_prod %1, %4", "i64[]",
     "{256*batch*tokens}"},
    {SHAPE "%4 = const i64[1] {0}\n%5 = reduce_sum %1, %4 keep_dims=true", "i64[1]",
     "{batch + tokens + 256}"},
    {X "%1 = weight f32[512,256] u4 group=64 scale=f16 zp=u4 @3\n"
       "%2 = matmul %0, %1 transpose_b=true",
     "f32[batch,tokens,512]", nullptr},
    {X "%1 = parameter f32[256]\n%2 = matmul %0, %1", "f32[batch,tokens]", nullptr},
    {"%0 = parameter f32[256]\n%1 = matmul %0, %0", "f32[]", nullptr},
    {"%0 = parameter f32[b,1,4,7]\n%1 = parameter f32[3,7,5]\n%2 = matmul %0, %1",
     "f32[b,3,4,5]", nullptr},
    {"%0 = parameter f32[7,4]\n%1 = parameter f32[7,5]\n%2 = matmul %0, %1 "
     "transpose_a=true",
     "f32[4,5]", nullptr},
    {X
     "%1 = const i64[] {4}\n%2, %3 = topk %0, %1 axis=-1 mode=max index_element_type=i64",
     "f32[batch,tokens,4], i64[batch,tokens,4]", nullptr},
    {"%0 = parameter f32[b,8,t,32]\n%1 = parameter f32[b,8,s,32]\n%2 = parameter "
     "f32[b,8,s,64]\n"
     "%3 = sdpa %0, %1, %2",
     "f32[b,8,t,64]", nullptr},
    /* parameters, results, states */
    {"%0 = parameter f32[b,0,8]\n%1 = read_value f32[b,past,8] %0 variable=\"k\"",
     "f32[b,past,8]", nullptr},
    {"%0 = read_value f32[b,past,8] variable=\"k\"\n%1 = assign %0 variable=\"k\"",
     "f32[b,past,8]", nullptr},
    {X "result %0 name=\"y\"", "f32[batch,tokens,256]", nullptr},
    {"%0 = weight f16[4,8,32] f16 @0", "f16[4,8,32]", nullptr},
    /* ops that passes create */
    {X "%1 = parameter f32[256]\n%2 = rms_norm %0, %1 epsilon=1e-06",
     "f32[batch,tokens,256]", nullptr},
    {"%0 = parameter f32[b,t,8,64]\n%1 = parameter f32[1,t,32]\n%2 = rope %0, %1, %1",
     "f32[b,t,8,64]", nullptr},
    {X "%1 = glu %0, %0", "f32[batch,tokens,256]", nullptr},
    {"%0 = parameter f32[b,t,8,64]\n%1 = parameter f32[b,t,2,64]\n%2 = parameter "
     "f32[b,t,2,48]\n"
     "%3 = attention %0, %1, %2, _, _, _, _ scale=0.125 key_state=\"k\" "
     "value_state=\"v\"",
     "f32[b,t,8,48]", nullptr},
    {"%0 = parameter f32[b,t,8,64]\n"
     "%1 = attention %0, _, _, _, _, _, _ scale=0.125 key_state=\"k\" value_state=\"v\"",
     "f32[b,t,8,64]", nullptr},
    {"%0 = parameter f32[b,t,8,64]\n%1 = parameter f32[1,t,32]\n%2 = parameter f32[64]\n"
     "%3 = attention %0, %0, %0, _, _, _, _, %1, %1, %2, %2, %2 scale=1 epsilon=1 "
     "key_state=\"k\" value_state=\"v\"",
     "f32[b,t,8,64]", nullptr},
    {"%0 = parameter f32[2,3,8,64]\n%1 = parameter f32[2,3,2,64]\n"
     "%2 = parameter i64[2,s]\n%3 = parameter f32[1,8,3,s]\n"
     "%4 = attention %0, %1, %1, _, %2, %3, _ scale=1 key_state=\"k\" value_state=\"v\"",
     "f32[2,3,8,64]", nullptr},
    {X "%1 = weight f32[16,256] f16 @1\n%2 = parameter f32[batch,tokens,16]\n"
       "%3 = parameter f32[16]\n%4 = linear %0, %2, %1, %3",
     "f32[batch,tokens,16]", nullptr},
    {X "%1 = weight f32[16,256] f16 @1\n%2 = weight f32[8,256] f16 @2\n"
       "%3, %4 = linear %0, _, %1, _, %2, _",
     "f32[batch,tokens,16], f32[batch,tokens,8]", nullptr},
    {X "%1 = weight f32[16,256] f16 @1\n%2 = weight f32[16,256] f16 @2\n"
       "%3 = linear %0, _, %1, _, %2, _ glu=true",
     "f32[batch,tokens,16]", nullptr},
    {X "%1 = weight f32[16,256] f16 @1\n%2 = parameter f32[batch,tokens,5,16]\n"
       "%3 = linear %0, %2, %1, _ glu=true slice=4",
     "f32[batch,tokens,16]", nullptr},
    {"%0 = parameter f32[1,t,32]\n%1 = weight f32[4,8,32] i8 group=32 scale=f16 @1\n"
     "%2 = parameter i32[t,2]\n%3 = gather_matmul %0, %1, %2, _",
     "f32[2,t,8]", nullptr},
    {"%0 = parameter f32[t,16]\n%1, %2 = moe_router %0, _, _ top_k=4",
     "f32[t,4], i32[t,4]", nullptr},
    {"%0 = parameter f32[t,32]\n%1 = parameter f32[t,2]\n%2 = parameter i32[t,2]\n"
     "%3 = weight f32[4,8,32] f16 @1\n%4 = weight f32[4,32,8] f16 @2\n"
     "%5 = moe %0, %1, %2, _, _, %3, %3, %4, _, _, _, _, _, _ hidden_size=32 "
     "inter_size=8 "
     "num_expert=4 top_k=2",
     "f32[t,32]", nullptr},
    {"%0 = parameter f32[t,32]\n%1 = parameter f32[t,4]\n"
     "%2 = weight f32[4,16,32] u4 group=32 scale=f16 @1\n"
     "%3 = weight f32[4,32,8] u4 group=8 scale=f16 @2\n"
     "%4 = moe_3gemm_fused_compressed %0, %1, _, _, _, %2, _, %3, _, _, _, _, _, _ "
     "gate_up=stacked hidden_size=32 inter_size=8 num_expert=4 top_k=2",
     "f32[t,32]", nullptr},
    {FUSED_BY_IDS "%5, %6, _, _, %2, %2, %3, %7, _, _, _, _, _, _, %7" FUSED_SIZES,
     "f32[t,32]", nullptr},
};

TEST(Shapes, AreInferred)
{
    for (const auto &r : good) {
        Graph g = parse(r.text);
        ASSERT_TRUE(g);
        EXPECT_EQ(types(g->last), r.types) << r.text;
        if (r.content) {
            EXPECT_EQ(content(&g->last->out[0]), r.content) << r.text;
        }
        xm_error err = {};
        EXPECT_EQ(xm_graph_validate(g.get(), nullptr, &err), XM_OK) << err.text << r.text;
        EXPECT_EQ(xm_graph_infer(g.get()), XM_OK) << g->err.text;
        EXPECT_EQ(print(parse(print(g.get()).substr(10)).get()), print(g.get()));
    }
}

const struct {
    const char *text, *error;
} bad[] = {
    {"%0 = parameter f32[4]\n%1 = parameter f32[5]\n%2 = add %0, %1", "f32[4], f32[5]"},
    {"%0 = parameter f32[4]\n%1 = parameter i64[4]\n%2 = add %0, %1", "element types"},
    {"%0 = parameter f32[4]\n%1 = parameter i64[4]\n%2 = less %0, %1", "element types"},
    {X "%1 = softmax %0 axis=3", "axis 3"},
    {X "%1 = const i64[] {3}\n%2 = cum_sum %0, %1", "axis 3"},
    {"%0 = parameter boolean[3]\n%1 = parameter f32[4]\n%2 = select %0, %1, %1",
     "broadcast"},
    {"%0 = parameter f32[4,3]\n%1 = const i64[2] {-1, 5}\n%2 = reshape %0, %1",
     "divided"},
    {"%0 = parameter f32[4,3]\n%1 = const i64[2] {-1, -1}\n%2 = reshape %0, %1", "twice"},
    {"%0 = parameter f32[4,3]\n%1 = const i64[2] {-1, -3}\n%2 = reshape %0, %1",
     "would be"},
    {"%0 = parameter f32[4,3]\n%1 = const i64[1] {13}\n%2 = reshape %0, %1",
     "cannot be reshaped"},
    {"%0 = parameter f32[4]\n%1 = const i64[2] {4, 0}\n%2 = reshape %0, %1 "
     "special_zero=true",
     "copied"},
    {"%0 = parameter f32[4]\n%1 = parameter i64[n]\n%2 = reshape %0, %1", "known length"},
    {X "%1 = const i64[1] {2}\n%2 = squeeze %0, %1", "not 1"},
    {X "%1 = squeeze %0", "constant dimensions"},
    {X "%1 = const i64[2] {0, 0}\n%2 = unsqueeze %0, %1", "twice"},
    {X "%1 = const i64[3] {0, 0, 1}\n%2 = transpose %0, %1", "twice"},
    {X "%1 = const i64[2] {0, 1}\n%2 = transpose %0, %1", "rank 3"},
    {"%0 = parameter f32[4,2]\n%1 = parameter f32[4,3]\n%2 = concat %0, %1 axis=0",
     "dimension 1"},
    {"%0 = parameter f32[4,2]\n%1 = parameter f32[4]\n%2 = concat %0, %1 axis=0",
     "rank 2"},
    {X "%1 = const i64[] {2}\n%2, %3, %4 = split %0, %1 n=3", "3 equal parts"},
    {X "%1 = const i64[] {2}\n%2 = const i64[2] {64, 65}\n%3, %4 = variadic_split %0, "
       "%1, %2",
     "129 elements"},
    {X "%1 = const i64[] {2}\n%2 = const i64[2] {300, -1}\n%3, %4 = variadic_split %0, "
       "%1, %2",
     "would be -44"},
    {"%0 = parameter f32[4]\n%1 = const i64[1] {5}\n%2 = broadcast %0, %1", "broadcast"},
    {"%0 = parameter f32[4]\n%1 = const i64[1] {1}\n%2 = broadcast %0, %1", "shrink"},
    {"%0 = parameter f32[4]\n%1 = const i64[1] {-2}\n%2 = tile %0, %1", "negative"},
    {"%0 = parameter f32[4611686018427387904]\n%1 = tile %0, %0", "64-bit"},
    {"%0 = parameter f32[4]\n%1 = const i64[1] {0}\n%2 = slice %0, %1, %1, %1",
     "step of the slice is 0"},
    {"%0 = parameter f32[4]\n%1 = const i64[1] {0}\n%2 = const i64[2] {1, 1}\n"
     "%3 = slice %0, %1, %2, %2",
     "1, 2 and 2 elements"},
    {"%0 = parameter f32[4]\n%1 = const i64[1] {4}\n"
     "%2 = strided_slice %0, %1, %1 shrink_axis_mask=\"1\"",
     "index 4"},
    {"%0 = parameter f32[4]\n%1 = const i64[2] {0, 0}\n%2 = strided_slice %0, %1, %1",
     "more"},
    {X "%1 = parameter i64[4]\n%2 = const i64[] {3}\n%3 = gather %0, %1, %2", "axis 3"},
    {SHAPE "%4 = const i64[1] {3}\n%5 = gather %1, %4, %2", "index 3"},
    {X "%1 = parameter i64[4]\n%2 = gather_elements %0, %1 axis=0", "rank 3"},
    {X "%1 = parameter i64[2,2,2]\n%2 = parameter f32[2,2,3]\n%3 = const i64[] {2}\n"
       "%4 = scatter_elements_update %0, %1, %2, %3",
     "dimension 2"},
    {X "%1 = shape_of %0 output_type=f32", "integer type"},
    {"%0 = const i64[] {0}\n%1 = range %0, %0, %0 output_type=i64", "step is 0"},
    {"%0 = parameter f32[4]\n%1 = range %0, %0, %0 output_type=i64", "scalar"},
    {"%0 = parameter i64[4]\n%1 = const i64[] {4}\n%2 = const f32[] {4}\n"
     "%3 = one_hot %0, %1, %2, %1",
     "element types"},
    {X "%1 = const i64[1] {3}\n%2 = reduce_sum %0, %1", "axis 3"},
    {X "%1 = parameter i64[1]\n%2 = reduce_sum %0, %1", "constant"},
    {X "%1 = parameter f32[255,8]\n%2 = matmul %0, %1", "rows of 256"},
    {"%0 = parameter f32[2,3,4]\n%1 = parameter f32[3,4,5]\n%2 = matmul %0, %1", "batch"},
    {X "%1 = const i64[] {257}\n%2, %3 = topk %0, %1 axis=-1 mode=max", "257 elements"},
    {"%0 = parameter f32[b,8,t,32]\n%1 = parameter f32[b,8,s,33]\n%2 = sdpa %0, %1, %1",
     "last dimension"},
    {"%0 = parameter f32[b,8]\n%1 = read_value f32[b,past,8] %0 variable=\"k\"",
     "rank 3"},
    {X "%1 = parameter f32[255]\n%2 = rms_norm %0, %1 epsilon=1", "is 255, not 256"},
    {"%0 = parameter f32[b,t,8,64]\n%1 = parameter f32[1,t,33]\n%2 = rope %0, %1, %1",
     "33"},
    {X "%1 = parameter f32[2]\n%2 = glu %0, %1", "broadcast"},
    {"%0 = parameter f32[b,t,8,64]\n%1 = parameter f32[b,t,3,64]\n"
     "%2 = attention %0, %1, %1, _, _, _, _ scale=1 key_state=\"k\" value_state=\"v\"",
     "8 query heads"},
    {"%0 = parameter f32[b,t,8,64]\n%1 = parameter f32[1,t,33]\n"
     "%2 = attention %0, %0, %0, _, _, _, _, %1, %1 scale=1 key_state=\"k\" "
     "value_state=\"v\"",
     "33"},
    {"%0 = parameter f32[2,3,8,64]\n%1 = parameter i64[3,s]\n"
     "%2 = attention %0, _, _, _, %1, _, _ scale=1 key_state=\"k\" value_state=\"v\"",
     "dimension 0 of operand 4 is 3, not 2"},
    {"%0 = parameter f32[2,3,8,64]\n%1 = parameter f32[1,4,3,s]\n"
     "%2 = attention %0, _, _, _, _, %1, _ scale=1 key_state=\"k\" value_state=\"v\"",
     "dimension 1 of operand 5 is 4, not 8"},
    {"%0 = parameter f32[b,t,8,64]\n%1 = parameter f32[64]\n"
     "%2 = attention %0, _, _, _, _, _, _, _, _, _, %1 scale=1 key_state=\"k\" "
     "value_state=\"v\"",
     "norm whose operand is absent"},
    {X "%1 = weight f32[16,256] f16 @1\n%2 = linear %0, %0, %1, _", "is 256, not 16"},
    {X "%1 = weight f32[256,256] f16 @1\n%2 = linear %0, _, %1, _ glu=true",
     "two weights, or one weight and a multiplier"},
    {X "%1 = weight f32[256,256] f16 @1\n%2 = linear %0, %0, %1, _, %1, _ glu=true",
     "two weights, or one weight and a multiplier"},
    {X "%1 = weight f32[256,256] f16 @1\n%2 = weight f32[16,256] f16 @2\n"
       "%3 = linear %0, _, %1, _, %2, _ glu=true",
     "is 16, not 256"},
    {X "%1 = weight f32[256,256] f16 @1\n%2 = linear %0, %0, %1, _ glu=true slice=1",
     "has no slice 1"},
    {X "%1 = weight f32[256,256] f16 @1\n%2, %3 = linear %0, %0, %1, _, %1, _",
     "an addend needs exactly one result"},
    {"%0 = parameter f32[1,t,31]\n%1 = weight f32[4,8,32] f16 @1\n%2 = parameter "
     "i32[t,2]\n"
     "%3 = gather_matmul %0, %1, %2, _",
     "is 32, not 31"},
    {"%0 = parameter f32[1,3,32]\n%1 = weight f32[4,8,32] f16 @1\n"
     "%2 = parameter i32[4,2]\n%3 = gather_matmul %0, %1, %2, _",
     "dimension 0 of operand 2 is 4, not 3"},
    {"%0 = parameter f32[t,16]\n%1, %2 = moe_router %0, _, _ top_k=17", "top_k is 17"},
    {"%0 = parameter f32[t,32]\n%1 = parameter f32[t,2]\n%2 = parameter i32[t,2]\n"
     "%3 = weight f32[4,8,32] f16 @1\n%4 = weight f32[4,32,8] f16 @2\n"
     "%5 = moe %0, %1, %2, _, _, %3, %3, %3, _, _, _, _, _, _ hidden_size=32 "
     "inter_size=8 "
     "num_expert=4 top_k=2",
     "operand 7 is 8, not 32"},
    {"%0 = parameter f32[t,32]\n"
     "%1 = moe %0, %0, _, _, _, _, _, _, _, _, _, _, _, _ hidden_size=32 inter_size=8 "
     "num_expert=4 top_k=2",
     "operand 5 is missing"},
    {FUSED_BY_IDS "%1, %6, _, _, %2, %2, %3, _, _, _, _, _, _" FUSED_SIZES,
     "operand 1 is 4, not 2"},
    {FUSED_BY_IDS "%5, %1, _, _, %2, %2, %3, _, _, _, _, _, _" FUSED_SIZES,
     "operand 2 is 4, not 2"},
    {FUSED_BY_IDS "%5, _, _, _, %2, %2, %3, _, _, _, _, _, _" FUSED_SIZES,
     "operand 1 is 2, not 4"},
    {FUSED_BY_IDS "%5, %6, %8, _, %2, %2, %3, _, _, _, _, _, _" FUSED_SIZES,
     "a router bias needs logits"},
    {FUSED_BY_IDS "%1, _, %7, _, %2, %2, %3, _, _, _, _, _, _" FUSED_SIZES,
     "an element for each expert"},
    {FUSED_BY_IDS "%5, %6, _, _, %2, %2, %3, %8, _, _, _, _, _" FUSED_SIZES,
     "operand 8 must be [E,N]"},
    {FUSED_BY_IDS "%5, %6, _, _, %2, %2, %3, _, %7, _, _, _, _" FUSED_SIZES,
     "operand 9 is 8, not 32"},
    {FUSED_BY_IDS "%5, %6, _, _, %4, _, %3, _, _, _, _, _, _, _, %7" FUSED_SIZES
                  " gate_up=stacked",
     "a bias whose weight is absent"},
    {FUSED_BY_IDS "%5, %6, _, _, %2, %2, %3, _, _, _, _, _, _" FUSED_SIZES
                  " expert_alpha=-1",
     "is below 0"},
};

TEST(Shapes, AreRefused)
{
    for (const auto &r : bad) {
        std::string error;
        Graph g = parse(r.text, &error);
        EXPECT_FALSE(g) << r.text;
        EXPECT_NE(error.find(r.error), std::string::npos) << error << "\n" << r.text;
    }
}

} // namespace
