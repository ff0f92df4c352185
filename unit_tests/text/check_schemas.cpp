/* SPDX-License-Identifier: Apache-2.0
 *
 * Judges the grammars of JSON Schemas by a folder of test cases, those of the
 * JSON-Schema-Test-Suite (tools/check_schemas): every valid instance, written without spaces, must
 * match in some spelling, and no invalid one in any: as it stands, or with whole numbers without
 * fraction and exponent, small hexadecimal digits, and the properties in each order.
 * With --judge it reads lines {"schema": …, "text": …} and writes whether each text matches; with
 * --generate N it reads a schema on each line and writes N random texts of it as JSON strings.
 */
#include <yyjson.h>

#include <algorithm>
#include <cctype>
#include <cmath>
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

void spell(yyjson_val *value, std::string *out);

/* Writes the members of an object in order number `order`; returns false if there are fewer
 * orders. */
bool
spell_object(yyjson_val *object, size_t order, std::string *out)
{
    constexpr size_t MOST_ORDERED = 4;
    std::vector<std::string> members;
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(object, i, n, key, value)
    {
        members.emplace_back();
        spell(key, &members.back());
        members.back() += ':';
        spell(value, &members.back());
    }
    std::vector<size_t> places(members.size());
    for (size_t k = 0; k < places.size(); k++)
        places[k] = k;
    for (size_t k = 0; k < order; k++)
        if (members.size() > MOST_ORDERED ||
            !std::next_permutation(places.begin(), places.end()))
            return false;
    *out += '{';
    for (size_t k = 0; k < places.size(); k++)
        *out += (k ? "," : "") + members[places[k]];
    *out += '}';
    return true;
}

/* Writes a value like JSON.stringify, except that large numbers have no exponent. */
void
spell(yyjson_val *value, std::string *out)
{
    size_t i, n;
    yyjson_val *one;
    std::string text = write(value);
    if (yyjson_is_obj(value)) {
        spell_object(value, 0, out);
        return;
    }
    if (yyjson_is_real(value) &&
        std::trunc(yyjson_get_real(value)) == yyjson_get_real(value)) {
        char whole[400];
        snprintf(whole, sizeof(whole), "%.0f", yyjson_get_real(value));
        text = whole;
    }
    if (yyjson_is_str(value))
        for (size_t at = 0; (at = text.find('\\', at)) != std::string::npos; at += 2)
            for (size_t k = 2; text[at + 1] == 'u' && k < 6; k++)
                text[at + k] = char(std::tolower(text[at + k]));
    if (yyjson_is_arr(value)) {
        text = "[";
        yyjson_arr_foreach(value, i, n, one)
        {
            text += i ? "," : "";
            spell(one, &text);
        }
        text += ']';
    }
    *out += text;
}

bool
matches(const xm_grammar *g, const std::string &text)
{
    bool result = false;
    xm_error why = {};
    if (g && xm_grammar_matches(g, text.data(), text.size(), &result, &why) != XM_OK)
        std::cout << "failed: " << why.text << "\n";
    return result;
}

bool
matches_respelled(const xm_grammar *g, yyjson_val *value)
{
    std::string text;
    if (!yyjson_is_obj(value)) {
        spell(value, &text);
        return matches(g, text);
    }
    for (size_t order = 0; spell_object(value, order, &text); order++, text.clear())
        if (matches(g, text))
            return true;
    return false;
}

struct Counts {
    size_t schemas = 0, refused = 0, valid = 0, invalid = 0;
    size_t respelled = 0, valid_wrong = 0, invalid_wrong = 0;
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
        yyjson_val *data = yyjson_obj_get(test, "data");
        const std::string text = write(data);
        const bool valid = yyjson_get_bool(yyjson_obj_get(test, "valid"));
        const bool as_it_stands = matches(g, text);
        const bool is_admitted = as_it_stands || matches_respelled(g, data);
        (valid ? counts->valid : counts->invalid)++;
        counts->respelled += valid && is_admitted && !as_it_stands;
        if (is_admitted != valid) {
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
              << counts.respelled << " are admitted in another spelling and "
              << counts.valid_wrong << " in none; of " << counts.invalid
              << " invalid ones " << counts.invalid_wrong << " are admitted\n";
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
        bool is_matched = false;
        xm_status s = xm_grammar_from_schema(schema.data(), schema.size(), &g, &err);
        if (s == XM_OK)
            s = xm_grammar_matches(g, yyjson_get_str(text), yyjson_get_len(text),
                                   &is_matched, &err);
        std::cout << (s != XM_OK ? err.text : is_matched ? "yes" : "no") << "\n";
        xm_grammar_free(g);
        yyjson_doc_free(doc);
    }
    return 0;
}

/* Returns a tokenizer whose tokens are the 256 bytes. */
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

/* Returns a random text of the grammar, drawn byte by byte; after some length it prefers bytes
 * that close. "": the text did not end. */
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
