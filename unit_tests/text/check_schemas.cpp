/* SPDX-License-Identifier: Apache-2.0
 *
 * Judges the grammars of JSON Schemas by a folder of test cases, those of the
 * JSON-Schema-Test-Suite (tools/check_schemas): every valid instance, written without spaces, must
 * match, and no invalid one.
 * With --judge it reads lines {"schema": …, "text": …} and writes whether each text matches; with
 * --generate N it reads a schema on each line and writes N random texts of it as JSON strings.
 */
#include <yyjson.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "plugin/text/byte_level.h"
#include "plugin/text/constraint.h"

namespace
{

std::string
write(yyjson_val *value)
{
    size_t n = 0;
    char *text = yyjson_val_write(value, 0, &n);
    std::string out(text ? text : "", n);
    free(text);
    return out;
}

struct Counts {
    size_t schemas = 0, refused = 0, valid = 0, invalid = 0;
    size_t valid_wrong = 0, invalid_wrong = 0;
    std::map<std::string, size_t> reasons;
};

void
check_group(yyjson_val *group, Counts *counts)
{
    const std::string schema = write(yyjson_obj_get(group, "schema"));
    xm_grammar *g = nullptr;
    xm_error err = {};
    counts->schemas++;
    const xm_status s = xm_grammar_from_schema(schema.data(), schema.size(), &g, &err);
    const bool matches_nothing =
        std::string(err.text).find(" valid") != std::string::npos;
    if (s != XM_OK && !matches_nothing) {
        counts->refused++;
        std::string why = err.text;
        counts->reasons[why.substr(std::min(why.find(": ") + 2, why.size()))]++;
        return;
    }
    size_t i, n;
    yyjson_val *test;
    yyjson_arr_foreach(yyjson_obj_get(group, "tests"), i, n, test)
    {
        const std::string text = write(yyjson_obj_get(test, "data"));
        const bool valid = yyjson_get_bool(yyjson_obj_get(test, "valid"));
        bool matches = false;
        xm_error why = {};
        if (g && xm_grammar_matches(g, text.data(), text.size(), &matches, &why) != XM_OK)
            std::cout << "failed: " << why.text << "\n";
        (valid ? counts->valid : counts->invalid)++;
        if (matches != valid) {
            (valid ? counts->valid_wrong : counts->invalid_wrong)++;
            std::cout << (valid ? "valid, not admitted: " : "INVALID, ADMITTED: ") << text
                      << "\n    " << schema.substr(0, 300) << "\n    "
                      << yyjson_get_str(yyjson_obj_get(test, "description")) << "\n";
        }
    }
    xm_grammar_free(g);
}

int
check_folder(const char *folder)
{
    Counts counts;
    std::vector<std::filesystem::path> files;
    for (const auto &file : std::filesystem::recursive_directory_iterator(folder))
        if (file.path().extension() == ".json")
            files.push_back(file.path());
    std::sort(files.begin(), files.end());
    for (const auto &file : files) {
        yyjson_doc *doc = yyjson_read_file(file.c_str(), 0, nullptr, nullptr);
        size_t i, n;
        yyjson_val *group;
        yyjson_arr_foreach(yyjson_doc_get_root(doc), i, n, group)
            check_group(group, &counts);
        yyjson_doc_free(doc);
    }
    for (const auto &[why, count] : counts.reasons)
        std::cout << count << " refused: " << why << "\n";
    std::cout << files.size() << " files, " << counts.schemas << " schemas, "
              << counts.refused << " refused; of " << counts.valid << " valid instances "
              << counts.valid_wrong << " are not admitted, of " << counts.invalid
              << " invalid ones " << counts.invalid_wrong << " are\n";
    return counts.invalid_wrong > 0 || files.empty();
}

int
judge()
{
    std::string line;
    while (std::getline(std::cin, line)) {
        yyjson_doc *doc = yyjson_read(line.data(), line.size(), 0);
        yyjson_val *root = yyjson_doc_get_root(doc);
        const std::string schema = write(yyjson_obj_get(root, "schema"));
        yyjson_val *text = yyjson_obj_get(root, "text");
        xm_grammar *g = nullptr;
        xm_error err = {};
        bool matches = false;
        xm_status s = xm_grammar_from_schema(schema.data(), schema.size(), &g, &err);
        if (s == XM_OK)
            s = xm_grammar_matches(g, yyjson_get_str(text), yyjson_get_len(text),
                                   &matches, &err);
        std::cout << (s != XM_OK ? err.text : matches ? "yes" : "no") << "\n";
        xm_grammar_free(g);
        yyjson_doc_free(doc);
    }
    return 0;
}

/* A vocabulary of the 256 bytes. */
xm_tokenizer *
byte_tokenizer()
{
    xm_strbuf json = {}, spelled = {};
    xm_strbuf_add(&json, "{\"model\":{\"type\":\"BPE\",\"vocab\":{");
    for (int b = 0; b < 256; b++) {
        const char c = char(b);
        xm_strbuf_clear(&spelled);
        xm_byte_level_encode(xm_slice_of(&c, 1), &spelled);
        const bool escaped = b == '"' || b == '\\';
        xm_strbuf_printf(&json, "%s\"%s%s\":%d", b ? "," : "", escaped ? "\\" : "",
                         spelled.text, b);
    }
    xm_strbuf_add(&json, "},\"merges\":[]},\"decoder\":{\"type\":\"ByteLevel\"}}");
    xm_tokenizer *t = nullptr;
    xm_tokenizer_load_memory(json.text, json.n, &t, nullptr);
    xm_strbuf_free(&json);
    xm_strbuf_free(&spelled);
    return t;
}

/* A random text, a byte at a time; late, what closes; "": it does not end soon. */
std::string
generate(const xm_grammar *g, const xm_tokenizer *t, std::mt19937 *random)
{
    std::string text;
    xm_constraint *c = nullptr;
    xm_token_bits bits = {};
    if (xm_constraint_create(g, t, &c, nullptr) != XM_OK)
        return text;
    while (text.size() < 4000) {
        if (xm_constraint_can_end(c) &&
            ((*random)() % 4 == 0 || xm_constraint_is_over(c)))
            break;
        std::string can, wanted;
        if (xm_constraint_allowed(c, false, &bits, nullptr) != XM_OK)
            break;
        for (int b = 0; b < 256; b++)
            if (bits.words[b / 64] >> b % 64 & 1)
                can += char(b);
        for (char one : can)
            if (text.size() > 200 ? std::string("]}\",:").find(one) != std::string::npos
                                  : (unsigned char)one < 0x80 && one != '\n' &&
                                        one != ' ' && one != '\t')
                wanted += one;
        const std::string &from = wanted.empty() || (*random)() % 8 == 0 ? can : wanted;
        if (can.empty())
            break;
        text += from[(*random)() % from.size()];
        xm_constraint_accept(c, (unsigned char)text.back(), false, nullptr);
    }
    const bool ends = xm_constraint_can_end(c);
    xm_constraint_free(c);
    return ends ? text : "";
}

int
generate_all(int count)
{
    std::string line;
    std::mt19937 random(7);
    xm_tokenizer *t = byte_tokenizer();
    while (std::getline(std::cin, line)) {
        xm_grammar *g = nullptr;
        xm_error err = {};
        if (xm_grammar_from_schema(line.data(), line.size(), &g, &err) != XM_OK) {
            std::cout << "refused: " << err.text << "\n";
            continue;
        }
        for (int i = 0; i < count; i++) {
            const std::string text = generate(g, t, &random);
            std::cout << text.size() << "\n" << text << "\n";
        }
        std::cout << "end\n";
        xm_grammar_free(g);
    }
    xm_tokenizer_free(t);
    return 0;
}

} // namespace

int
main(int argc, char **argv)
{
    const std::string first = argc > 1 ? argv[1] : "";
    if (first == "--judge")
        return judge();
    if (first == "--generate" && argc > 2)
        return generate_all(atoi(argv[2]));
    if (argc == 2)
        return check_folder(argv[1]);
    std::cerr << "usage: check_schemas FOLDER | --judge | --generate N\n";
    return 2;
}
