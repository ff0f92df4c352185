/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe embed on trained models, compared with the reference's hidden states and with xemoe serve
 * on the same texts.
 */
#include <algorithm>
#include <cmath>

#include "functional_tests/cli/serve_test.h"

namespace
{

const std::string tiny = XM_MODELS_DIR "/qwen3moe-tiny";

double
cosine(const Floats &a, const Floats &b)
{
    double ab = 0, aa = 0, bb = 0;
    EXPECT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size() && i < b.size(); i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return ab / std::sqrt(aa * bb);
}

std::string
prompt_of(const std::string &model, const std::string &name)
{
    Json list(read_file(std::string(XM_MODELS_DIR "/") + model + "/golden/prompts.json"));
    for (int i = 0; i < 6; i++) {
        const std::string at = "/" + std::to_string(i);
        if (list.text(at + "/name") == name)
            return list.text(at + "/text");
    }
    ADD_FAILURE() << name;
    return "";
}

class Embed : public Serve
{
  protected:
    Matrix embed(const Words &words)
    {
        const Outcome o = run(Words{"embed"} + words + Words{"-o", "-"});
        EXPECT_EQ(o.code, 0) << o.err;
        return parse_npy(o.out);
    }
};

/* Files with 8-bit weights and MXFP4 are close enough to the reference. */
TEST_F(Embed, GivesTheReferencesHiddenStates)
{
    const struct {
        const char *model, *file;
        double nearest;
    } rows[] = {{"gpt-oss-tiny", "gguf/gpt-oss-tiny-MXFP4_MOE.gguf", 0.99998},
                {"qwen3moe-tiny", "ov/int8_asym", 0.9999}};
    for (const auto &row : rows) {
        const std::string folder = std::string(XM_MODELS_DIR "/") + row.model + "/";
        const Safetensors golden(folder + "golden/embeddings_hf_f32.safetensors");
        for (const char *pooling : {"last", "mean"}) {
            const Matrix m =
                embed(Words{folder + row.file, "-p", prompt_of(row.model, "nonascii"),
                            "--pooling", pooling} +
                      exact);
            ASSERT_EQ(m.rows, 1u);
            EXPECT_GT(
                cosine(m.row(0), golden.get<float>(std::string("nonascii.") + pooling)),
                row.nearest)
                << row.model << " " << pooling;
        }
    }
}

TEST_F(Embed, ReadsALineEach)
{
    const Folder folder{"embed"};
    folder.write("lines.txt", "Paris\n\n\"One\\nday\"\nRome\n");
    const Words with = Words{tiny + "/ov/int8_asym"} + exact;
    const Matrix all = embed(with + Words{"-p", "Berlin", "-f", folder / "lines.txt"});
    const std::string texts[] = {"Berlin", "Paris", "One\nday", "Rome"};
    ASSERT_EQ(all.rows, 4u);
    for (size_t i = 0; i < 4; i++) {
        const Matrix alone = embed(with + Words{"-p", texts[i]});
        EXPECT_GT(cosine(alone.row(0), all.row(i)), 1 - 1e-6) << texts[i];
    }
    EXPECT_LT(cosine(all.row(0), all.row(1)), 0.9999) << "texts differ";
}

TEST_F(Embed, SaysThatBlankLinesHaveNoEmbedding)
{
    const Folder folder{"embed"};
    const std::string file = folder / "lines.txt";
    folder.write("lines.txt", "Paris\n\nRome\n");
    const Outcome o = run({"embed", tiny + "/ov/int8_asym", "-f", file});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_NE(
        o.err.find(file + ": 1 blank line is skipped, the first one is line 2; to use"),
        std::string::npos)
        << o.err;
}

TEST_F(Embed, PrintsNumbersOrJson)
{
    const Words words = {"embed", tiny + "/ov/int8_asym", "-p", "Paris", "-p",
                         "Rome",  "--dimensions",         "3"};
    const Outcome text = run(words);
    EXPECT_EQ(text.code, 0) << text.err;
    EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'), 2);
    EXPECT_EQ(std::count(text.out.begin(), text.out.end(), ' '), 4);
    const Outcome json = run(words + Words{"--json", "--pooling", "mean"});
    EXPECT_EQ(json.code, 0) << json.err;
    const Json j(json.out);
    EXPECT_EQ(j.text("/pooling"), "mean");
    EXPECT_EQ(j.number("/dimensions"), 3);
    double squares = 0;
    for (int i = 0; i < 3; i++)
        squares += std::pow(j.number("/texts/1/embedding/" + std::to_string(i)), 2);
    EXPECT_NEAR(squares, 1, 1e-6);
}

TEST_F(Embed, SaysWhatIsWrong)
{
    const std::string file = tiny + "/ov/int8_asym";
    std::string much;
    for (int i = 0; i < 3000; i++)
        much += "no ";
    const struct {
        Words words;
        int code;
        std::string part;
    } rows[] = {
        {{file}, 2, "which texts?"},
        {{file, "-p", "a", "--pooling", "cls"}, 2, "--pooling"},
        {{file, "-p", ""}, 2, "text 1: the text is empty"},
        {{file, "-p", "a", "--dimensions", "257"},
         2,
         "--dimensions is 257, but the model has 256"},
        {{file, "-p", "a", "-p", much},
         2,
         "text 2: it has 6001 tokens, but the model was trained for 2048"},
        {{file, "-f", "/dev/null"}, 2, "contains no text"},
    };
    for (const auto &row : rows) {
        const Outcome o = run(Words{"embed"} + row.words);
        EXPECT_EQ(o.code, row.code) << o.err;
        EXPECT_TRUE(contains(o.err, row.part)) << o.err;
    }
}

TEST_F(Embed, IsWhatServeGives)
{
    const std::string texts[] = {"Paris is the capital of", "Rome"};
    for (const std::string pooling : {"last", "mean"}) {
        begin({"--pooling", pooling, "--embeddings"});
        const Json got(
            ask(RawClient::request("/v1/embeddings", "{\"input\":[\"" + texts[0] +
                                                         "\",\"" + texts[1] + "\"]}"))
                .body);
        const Matrix wanted = embed(
            Words{"-m", model, "--pooling", pooling, "-p", texts[0], "-p", texts[1]} +
            exact);
        for (size_t i = 0; i < 2; i++) {
            Floats row;
            for (size_t k = 0; k < wanted.cols; k++)
                row.push_back((float)got.number("/data/" + std::to_string(i) +
                                                "/embedding/" + std::to_string(k)));
            EXPECT_GT(cosine(row, wanted.row(i)), 1 - 1e-6) << pooling << " " << i;
        }
        EXPECT_EQ(ask(RawClient::request(completions, body("One day", 4))).status, 200);
        program->send(SIGTERM);
        EXPECT_EQ(program->finish().code, 0);
    }
}

} // namespace
