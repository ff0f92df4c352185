/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON Schemas: which JSON texts their grammars admit, and which keywords are refused where.
 */
#include <chrono>

#include "runtime/util/memory.h"
#include "unit_tests/text/grammar_test.h"

namespace
{

struct SchemaCase {
    const char *schema;
    std::vector<std::string> yes, no;
};

const SchemaCase cases[] = {
    {"true",
     {"1", "null", "\"a\"", "[]", "{\"a\":[{}]}", "[1, 2]", "{\n  \"a\": 1\n}"},
     {"", "01", "a", "[1,]", "{a:1}", " 1"}},
    {R"({"type":"string"})",
     {R"("")", R"("aé\n\u00e9\ud83d\ude00\/")"},
     {"\"\n\"", R"("\x")", R"("\ud83d")", R"("\ude00")", "\"", "\"\xff\"", "1"}},
    {R"({"type":["null","boolean"]})", {"null", "true", "false"}, {"0", "\"\""}},
    {R"({"type":"string","minLength":1,"maxLength":3})",
     {R"("a")", R"("éé😀")", R"("\"\u00e9c")", R"("\ud83d\ude00")"},
     {R"("")", R"("abcd")", R"("\n\n\n\n")"}},
    {R"({"type":"string","maxLength":100000})", {R"("")", R"("abc")"}, {"1"}},
    {R"({"type":"integer"})", {"0", "-0", "12", "-7"}, {"1.5", "01", "1e2", "-", "+1"}},
    {R"({"type":"number"})", {"0", "1.50", "-1e5", "2E-3"}, {".5", "1.", "1e", "--1"}},
    {R"({"type":"integer","minimum":-3,"maximum":12})",
     {"-3", "-1", "0", "9", "10", "12"},
     {"-4", "13", "100", "-10", "00"}},
    {R"({"type":"integer","exclusiveMinimum":99,"exclusiveMaximum":1001})",
     {"100", "999", "1000"},
     {"99", "1001", "10000"}},
    {R"({"type":"integer","minimum":1.5,"maximum":3.5})", {"2", "3"}, {"1", "4"}},
    {R"({"type":"integer","maximum":-5})", {"-5", "-10", "-999"}, {"-4", "0", "5"}},
    {R"({"type":"integer","minimum":9223372036854775807})",
     {"9223372036854775807", "9223372036854775808"},
     {"9223372036854775806"}},
    {R"({"type":"number","minimum":0.25,"exclusiveMaximum":1.5})",
     {"0.25", "0.250", "0.3", "1", "1.0", "1.49999"},
     {"0.2499", "1.5", "1.50", "2", "0", "-1"}},
    {R"({"type":"number","exclusiveMinimum":0})",
     {"0.001", "1", "12.5"},
     {"0", "0.0", "-0", "-1"}},
    {R"({"type":"number","maximum":0})", {"0", "-0", "-0.5", "-12", "0.0"}, {"0.1", "1"}},
    {R"({"type":"number","minimum":-1.25,"maximum":-1.05})",
     {"-1.25", "-1.2", "-1.1", "-1.05"},
     {"-1.26", "-1.04", "-1", "1.1"}},
    {R"({"type":"number","minimum":2,"maximum":2})", {"2", "2.00"}, {"2.01", "1.99"}},
    {R"({"enum":["a",1,null,{"x":[true]}]})",
     {"\"a\"", "1", "null", "{\"x\":[true]}"},
     {"\"b\"", "true", "2"}},
    {R"({"const":"x\"y"})", {R"("x\"y")"}, {R"("xy")"}},
    {R"({"enum":[-2.0,1.50,1e20,[0.0,"1.0\",2.0"],{"a":3.0}]})",
     {"-2", "1.5", "100000000000000000000", R"([0,"1.0\",2.0"])", R"({"a":3})"},
     {"-2.0", "-20", "[0.0,\"1.0\\\",2.0\"]", "[0,\"1\\\",2\"]"}},
    {R"({"type":"string","enum":["a",1]})", {"\"a\""}, {"1"}},
    {R"({"enum":["a","éé","\u000b\u001F","abc",2,2.0e21,-3,[9],null],)"
     R"("maxLength":2,"minimum":0})",
     {"\"a\"", "\"éé\"", R"("\u000b\u001f")", "2", "2e21", "[9]", "null"},
     {"\"abc\"", "-3", R"("\u000B\u001F")"}},
    {R"({"allOf":[{"enum":["a-1","b","c-3"],"format":"x"},{"pattern":"^[a-b]-\\d$"}]})",
     {"\"a-1\""},
     {"\"b\"", "\"c-3\""}},
    {R"({"enum":["\u000bAB","\u000b\"u00AB"],"pattern":"^\\s"})",
     {R"("\u000bAB")", R"("\u000b\"u00AB")"},
     {R"("\u000bab")"}},
    {R"({"type":"number","enum":[4,6,0.25,1e-7],"multipleOf":0.5})",
     {"4", "6"},
     {"0.25", "1e-7"}},
    {R"({"patternProperties":{"^\\s$":false},"properties":{"\u000b":{}},)"
     R"("additionalProperties":false})",
     {"{}"},
     {R"({"\u000b":1})", R"({"\u000B":1})"}},
    {R"({"type":"number","multipleOf":5})", {"0", "-15", "100"}, {"3", "5.0", "5.5"}},
    {R"({"type":"number","multipleOf":0.25})",
     {"0", "-0.25", "1.5", "1.50", "10.0", "7", "100.75"},
     {"0.2", "1.", "1.500", "0.26", ".25", "01.5", "-.5"}},
    {R"({"type":"integer","multipleOf":1.5})", {"3", "-12", "0"}, {"1.5", "2", "3.0"}},
    {R"({"type":"integer","multipleOf":1e-8})", {"12391239123", "0"}, {"0.1"}},
    {R"({"type":"number","allOf":[{"multipleOf":0.5},{"multipleOf":0.2}],"minimum":1e15})",
     {"1000000000000000", "1000000000000001"},
     {"1000000000000000.5", "999999999999999", "1"}},
    {R"({"type":"integer","multipleOf":2048})", {"2048", "-4096", "2048000"}, {"2047"}},
    {R"({"allOf":[{"multipleOf":4},{"multipleOf":6,"type":"integer"}]})",
     {"0", "12", "144"},
     {"4", "6", "18"}},
    {R"({"pattern":"^[a-z][a-z0-9-]*$","type":"string","minLength":3,"maxLength":5})",
     {R"("abc")", R"("a-9-1")"},
     {R"("ab")", R"("abcdef")", R"("1bc")"}},
    {R"({"pattern":"^(ab)+$","type":"string","minLength":3,"maxLength":7})",
     {R"("abab")", R"("ababab")"},
     {R"("ab")", R"("abababab")"}},
    {R"({"pattern":"^a$|^[bc]{1,9}$","type":"string","minLength":2,"maxLength":3})",
     {R"("bc")", R"("bbb")"},
     {R"("a")", R"("b")", R"("bbbb")"}},
    {R"({"pattern":"é+","type":"string","minLength":1})",
     {R"("é")", R"("aéb")"},
     {R"("")"}},
    {R"({"pattern":"^.{2,}$","type":"string","maxLength":3})",
     {R"("éé")", R"("\"\t\\")"},
     {R"("é")", R"("abcd")"}},
    {R"({"format":"date","type":"string","minLength":1,"maxLength":10})",
     {R"("2024-02-29")"},
     {R"("2023-02-29")"}},
    {R"({"format":"email","type":"string","minLength":3})",
     {R"("a@b.c")"},
     {R"("@b.c")"}},
    {R"({"properties":{"id":{"type":"integer"},"x-id":{"maxLength":2}},"required":["id"],)"
     R"("patternProperties":{"^x-":{"type":"string"}}})",
     {R"({"id":1})", R"({"id":1,"x-id":"ab","x-":"a","x-idea":"abc","y":1})",
      R"({"id":1,"x":2,"x-a":"b"})"},
     {R"({"id":1,"x-a":2})", R"({"x-a":"b"})", R"({"id":1,"x-id":"abc"})",
      R"({"id":1,"x-id":1})", R"({"id":1,"y":1,"x-id":"abc"})"}},
    {R"({"properties":{"a":{"type":"null"}},"patternProperties":{"^[bc]+$":{"type":"integer"}},)"
     R"("additionalProperties":false})",
     {R"({"a":null,"b":1,"cb":2})", "{}"},
     {R"({"a":1})", R"({"d":1})", R"({"b":null})", R"({"ba":1})"}},
    {R"({"patternProperties":{"^a-":{"type":"integer"},"^b-?c":{"type":"null"}},)"
     R"("additionalProperties":false})",
     {R"({"a-":1,"bc":null,"b-cd":null,"a-x":2})"},
     {R"({"a-":null})", R"({"bc":1})", R"({"b":null})"}},
    {R"({"patternProperties":{"^a":false}})", {R"({"b":1})", "{}"}, {R"({"ab":1})"}},
    {R"({"patternProperties":{"^a":{"type":"integer"}},"additionalProperties":{"type":"null"}})",
     {R"({"a":1,"b":null})"},
     {R"({"a":null})", R"({"b":1})"}},
    {R"({"allOf":[{"patternProperties":{"^a":{"minimum":3}}},)"
     R"({"additionalProperties":{"type":"integer"}}]})",
     {R"({"a":3,"b":1})"},
     {R"({"a":2})", R"({"a":3.5})", R"({"b":"1"})"}},
    {R"({"allOf":[{"patternProperties":{"^x-":{"type":"integer"},"^y":{"type":"null"}}},)"
     R"({"patternProperties":{"^x-":{"minimum":3}},"additionalProperties":{"type":"null"}}]})",
     {R"({"x-a":3,"y":null,"x-":4})", "{}"},
     {R"({"x-a":2})", R"({"x-a":3.5})", R"({"y":1})", R"({"x":3})"}},
    {R"({"type":"array","items":{"type":"integer"}})",
     {"[]", "[1]", "[1,2, 3]"},
     {"[\"a\"]", "[1 2]", "[,1]"}},
    {R"({"type":"array","items":{"type":"null"},"minItems":1,"maxItems":3})",
     {"[null]", "[null,null,null]"},
     {"[]", "[null,null,null,null]"}},
    {R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false})",
     {"[]", "[1]", "[1,\"a\"]"},
     {"[\"a\"]", "[1,\"a\",1]"}},
    {R"({"type":"array","prefixItems":[{"const":1}],"items":{"const":2},"minItems":2})",
     {"[1,2]", "[1,2,2]"},
     {"[1]", "[2,2]", "[]"}},
    {R"({"type":"array","maxItems":100000,"items":{"type":"boolean"}})",
     {"[]", "[true,false]"},
     {"[1]"}},
    {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},
         "required":["b"],"additionalProperties":false})",
     {R"({"a":1,"b":""})", R"({"b":"x"})", R"({"a": 1, "b": "x"})"},
     {R"({"a":1})", R"({"b":"","a":1})", R"({"b":"","c":1})", "{}",
      R"({"a":1,"b":"",})"}},
    {R"({"type":"object","properties":{"a":{"type":"integer"}}})",
     {"{}", R"({"a":1})", R"({"b":"x"})", R"({"a":1,"ab":[],"":0})", R"({"x":1,"y":2})"},
     {R"({"a":"x"})", R"({"\u0061":"x"})", R"({"b":1,"a":"x"})"}},
    {R"({"type":"object","additionalProperties":{"type":"integer"}})",
     {"{}", R"({"a":1})", R"({"\"é":1,"b":2})"},
     {R"({"a":"x"})"}},
    {R"({"type":"object","required":["q"]})",
     {R"({"q":1})", R"({"q":1,"z":2})"},
     {"{}", R"({"z":2})"}},
    {R"({"type":"object","properties":{"a":false}})",
     {"{}", R"({"b":1})"},
     {R"({"a":1})"}},
    {R"({"type":"object","patternProperties":{"^x[0-9]+$":{"type":"integer"}},
        "additionalProperties":false})",
     {"{}", R"({"x1":1,"x22":2})"},
     {R"({"y":1})", R"({"x":1})"}},
    {R"({"type":"object","properties":{"a":{},"b":{},"c":{}},"additionalProperties":false})",
     {"{}", R"({"a":1,"c":2})", R"({"b":1})", R"({"c":1})"},
     {R"({"c":1,"a":2})", R"({,"a":1})"}},
    {R"({"minimum":5})", {"5", "\"a\"", "null", "[]"}, {"4"}},
    {R"({"anyOf":[{"type":"integer"},{"type":"string"}]})", {"1", "\"a\""}, {"null"}},
    {R"({"maxLength":2,"anyOf":[{"type":"integer"},{"type":"string","minLength":2}]})",
     {"1", "\"ab\""},
     {"\"a\"", "\"abc\""}},
    {R"({"oneOf":[{"type":"integer"},{"type":"string"}]})", {"1", "\"a\""}, {"null"}},
    {R"({"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"v":{"type":"integer"}},
                  "required":["k"],"additionalProperties":false},
                 {"type":"object","properties":{"k":{"const":"b"}},
                  "required":["k"],"additionalProperties":false}]})",
     {R"({"k":"a","v":1})", R"({"k":"b"})"},
     {R"({"k":"b","v":1})", R"({"k":"c"})"}},
    {R"({"allOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},
                 {"properties":{"b":{"type":"string"}},"required":["b"]}],"type":"object"})",
     {R"({"a":1,"b":"x"})"},
     {R"({"a":1})", R"({"a":"x","b":"x"})"}},
    {R"({"allOf":[{"minimum":3},{"maximum":5},{"type":"integer"}]})",
     {"3", "5"},
     {"2", "6", "\"\""}},
    {R"({"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},
         "next":{"$ref":"#/$defs/n"}},"required":["v"],"additionalProperties":false}}})",
     {R"({"v":1})", R"({"v":1,"next":{"v":2,"next":{"v":3}}})"},
     {R"({"next":{"v":1}})"}},
    {R"({"type":"array","items":{"$ref":"#"}})", {"[]", "[[],[[]]]"}, {"[1]"}},
    {R"({"$defs":{"a/b":{"const":1},"c~%":{"const":2}},
         "anyOf":[{"$ref":"#/$defs/a~1b"},{"$ref":"#/$defs/c~0%25"}]})",
     {"1", "2"},
     {"3"}},
    {R"({"$id":"https://e.com/a/root","anyOf":[{"$ref":"#n"},{"$ref":"item"},
         {"$ref":"/b#/$defs/s"}],"$defs":{"n":{"$anchor":"n","const":0},
         "i":{"$id":"item","$ref":"#/$defs/s","$defs":{"s":{"enum":[1,"n"],"$anchor":"n"}}},
         "b":{"$id":"../b","$defs":{"s":{"$ref":"#n"},
         "n":{"$dynamicAnchor":"n","const":2}}},"s":{"const":3}}})",
     {"0", "1", "2", "\"n\""},
     {"3"}},
    {R"({"$id":"urn:x:1","properties":{"a":{"$ref":"urn:x:1"},"$id":{"$ref":"#c"}},
         "additionalProperties":false,"$defs":{"c":{"$id":"#c","const":1},
         "d":{"enum":[{"$anchor":"c","const":2}]}}})",
     {R"({"a":{"$id":1}})"},
     {R"({"a":{"$id":2}})", R"({"$id":2})"}},
    {R"({"oneOf":[{"$ref":"x"},{"type":"null"}],"$defs":{"x":{"$id":"./x","const":5}}})",
     {"5", "null"},
     {"1"}},
    {R"({"$ref":"#/$defs/s","maxLength":2,"$defs":{"s":{"type":"string"}}})",
     {"\"ab\""},
     {"\"abc\"", "1"}},
    {R"({"type":"string","pattern":"^[a-c]+\\d?$"})",
     {"\"abc1\"", "\"a\""},
     {"\"\"", "\"abc12\"", "\"xa\""}},
    {R"({"type":"string","pattern":"b\"|\\\\"})",
     {R"("ab\"c")", R"("\\")"},
     {"\"b\"", "\"\""}},
    {R"({"type":"string","pattern":"^(?:a|b(?<n>c))*?$"})",
     {"\"\"", "\"abca\""},
     {"\"b\""}},
    {R"({"type":"string","pattern":"^.{2,3}$"})",
     {"\"ab\"", R"("\"\\")"},
     {R"("a\n")", "\"a\""}},
    {R"({"type":"string","pattern":"^\\u00e9[^\\w\\s]$"})",
     {"\"é-\""},
     {"\"éa\"", "\"é \""}},
    {R"({"type":"string","format":"date"})",
     {"\"2024-02-29\"", "\"1999-12-31\"", "\"2000-02-29\""},
     {"\"2023-02-29\"", "\"1900-02-29\"", "\"2023-04-31\"", "\"2023-13-01\"",
      "\"0000-01-01\""}},
    {R"({"type":"string","format":"date-time"})",
     {"\"2024-01-02T03:04:05Z\"", "\"2024-01-02T03:04:05.5+01:00\""},
     {"\"2024-01-02 03:04:05\"", "\"2024-01-02T24:00:00Z\""}},
    {R"({"type":"string","format":"uuid"})",
     {"\"123e4567-e89b-12d3-A456-426614174000\""},
     {"\"123e4567\""}},
    {R"({"type":"string","format":"ipv4"})",
     {"\"127.0.0.1\"", "\"255.255.255.255\""},
     {"\"256.1.1.1\"", "\"1.2.3\"", "\"01.2.3.4\""}},
    {R"({"type":"string","format":"ipv6"})",
     {"\"::1\"", "\"fe80::1:2\"", "\"1:2:3:4:5:6:7:8\"", "\"::\"", "\"::ffff:192.0.2.1\"",
      "\"1:2:3:4:5:6:192.0.2.1\"", "\"1::192.0.2.1\"", "\"1:2::3:4:5:192.0.2.1\""},
     {"\"1:2\"", "\"1:::2\"", "\"1:2:3:4:5:6:7:192.0.2.1\"", "\"1:2:3::4:5:6:192.0.2.1\"",
      "\"::1.2.3\"", "\"::192.0.2.256\"", "\"192.0.2.1\"", "\"1::192.0.2.1:2\""}},
    {R"({"type":"string","format":"email"})",
     {"\"a.b@c.de\""},
     {"\"a@\"", "\"@b\"", "\"a..b@c\""}},
    {R"({"type":"string","format":"uri"})",
     {"\"https://a.b/c_(d)/%20e?f=g%26h&i#j\"", "\"http://localhost:8080/\"",
      "\"mailto:a@b.c\"", "\"urn:a:b\"", "\"file:///c\"", "\"ftp://u:p@[::1]:21/x;y\"",
      "\"data:,a\"", "\"http://[v1.a:b]?#\""},
     {"\"/a\"", "\"a.b/c\"", "\"http://a b\"", "\"http://a/%2g\"", "\"http://a:b/\"",
      "\"1a:b\"", "\"http://[::1/\"", "\"http://a/#b#c\"", "\"\"", "\"http://a/<b>\"",
      "\"http://é/\""}},
    {R"({"type":"string","format":"uri","minLength":1,"maxLength":14})",
     {"\"https://a.b/c\"", "\"http://a?b=c\""},
     {"\"https://a.b/cde\"", "\"ftp://a\""}},
    {R"({"type":"string","format":"uri-reference"})",
     {"\"a/b:c\"", "\"//a:1/b\"", "\"/a//b\"", "\"?a\"", "\"#b\"", "\"\"", "\"../a\"",
      "\"a:b\""},
     {"\"1:b\"", "\"a b\"", "\"\\\\a\""}},
    {R"({"type":"string","format":"iri"})",
     {"\"http://é.b/ü?ß#中😀\"", "\"http://a/\""},
     {"\"é/ü\"", "\"http://a/\u007f\"", "\"http://a/ \""}},
    {R"({"type":"string","format":"iri-reference"})",
     {"\"é/ü\"", "\"#ƒrägmênt\""},
     {"\"é:ü\"", "\"#a#b\""}},
    {R"({"type":"string","format":"json-pointer"})",
     {"\"\"", "\"/\"", "\"/a~0b~1/é/0\"", "\"/ \\\"\""},
     {"\"a\"", "\"/~\"", "\"/~2\"", "\"#/a\""}},
    {R"({"type":"string","format":"relative-json-pointer"})",
     {"\"0\"", "\"10#\"", "\"1/a~0\""},
     {"\"\"", "\"01\"", "\"/a\"", "\"1#/a\"", "\"-1/a\""}},
    {R"({"type":"string","format":"uri-template"})",
     {"\"http://a/{b}{?c,d*,e:12}{#f.g}\"", "\"\"", "\"{+a}%20{/b}é\""},
     {"\"{\"", "\"{a\"", "\"{}\"", "\"a}\"", "\"{a:0}\"", "\"{a,}\"", "\"{a b}\"",
      "\"a b\"", "\"%2\""}},
    {R"({"type":"object","unevaluatedProperties":true,"propertyNames":{},"not":false})",
     {"{}", R"({"a":1})"},
     {"1"}},
    {R"({"type":"array","uniqueItems":false,"unevaluatedItems":true})",
     {"[]", "[1,1]"},
     {"{}"}},
    {R"({"allOf":[{"if":{"const":0}},{"then":{"const":1}},{"else":false}]})",
     {"0", "2"},
     {}},
    {R"({"type":"object","properties":{"a":{},"b":{}},"additionalProperties":false,)"
     R"("oneOf":[{"required":["a"]},{"required":["b"]}]})",
     {R"({"a":1})", R"({"b":1})"},
     {"{}", R"({"a":1,"b":1})"}},
    {R"({"oneOf":[{"required":["a","b"],"type":"object"},{"properties":{"a":{"type":"null"}}},)"
     R"({"type":"array","maxItems":1}]})",
     {R"({"a":1,"b":1})", R"({"a":null})", "{}", "[1,2]", "1"},
     {R"({"a":null,"b":1})", "[]", R"({"a":1})"}},
    {R"({"type":"number","oneOf":[{"minimum":3},{"maximum":5},{"exclusiveMinimum":9}]})",
     {"2", "2.5", "6", "9"},
     {"3", "5", "4", "9.5"}},
    {R"({"type":"object","properties":{"kind":{"enum":["a","b"]},"x":{},"y":{}},)"
     R"("required":["kind"],"if":{"properties":{"kind":{"const":"a"}}},"then":{"required":["x"]},)"
     R"("else":{"required":["y"]},"additionalProperties":false})",
     {R"({"kind":"a","x":1})", R"({"kind":"b","y":1})", R"({"kind":"b","x":1,"y":1})"},
     {R"({"kind":"a","y":1})", R"({"kind":"b","x":1})", R"({"kind":"c","y":1})"}},
    {R"({"type":["string","boolean","null"],"not":{"enum":["ab","b",true,null,7]}})",
     {"\"\"", "\"a\"", "\"abc\"", "\"é\"", "false"},
     {"\"ab\"", "\"b\"", "true", "null", R"("\u0061b")"}},
    {R"({"enum":[1,2.5,"x",[1]],"not":{"enum":[1.0,[1.0],"y"],"title":"z"}})",
     {"2.5", "\"x\""},
     {"1", "[1]"}},
    {R"({"type":"string","not":{"enum":["a","b"],"const":"b"}})", {"\"a\""}, {"\"b\""}},
    {R"({"not":{"type":["number","string"]}})",
     {"null", "[]", "{}", "true"},
     {"1", "\"\""}},
    {R"({"type":"string","not":{"minLength":2}})", {"\"\"", "\"a\""}, {"\"ab\""}},
    {R"({"type":"array","not":{"allOf":[{"minItems":1},{"maxItems":2}]}})",
     {"[]", "[1,2,3]"},
     {"[1]", "[1,2]"}},
    {R"({"type":"number","not":{"$ref":"#/$defs/r"},"$defs":{"r":{"exclusiveMaximum":1,)"
     R"("description":"r","exclusiveMinimum":0}}})",
     {"0", "1", "7"},
     {"0.5"}},
    {R"({"type":"object","properties":{"a":{"type":["boolean","null"]},"b":{}},)"
     R"("if":{"properties":{"a":{"type":"null"}},"required":["a"]},"then":{"required":["b"]},)"
     R"("else":{"properties":{"b":{"type":"null"}}},"additionalProperties":false})",
     {R"({"a":null,"b":1})", R"({"a":true,"b":null})", R"({"b":null})", R"({"a":true})",
      "{}"},
     {R"({"a":null})", R"({"a":true,"b":1})", R"({"b":1})"}},
    {R"({"type":"integer","if":{"exclusiveMaximum":0},"then":{"minimum":-10}})",
     {"-10", "0", "5"},
     {"-11"}},
    {R"({"type":"object","properties":{"a":{},"b":false,"c":{}},"minProperties":1})",
     {R"({"a":1})", R"({"c":1})", R"({"a":1,"c":1,"d":2})", R"({"d":1})"},
     {"{}", R"({"b":1})", R"({"c":1,"a":1})"}},
    {R"({"type":"object","properties":{"a":{}},"minProperties":1,"maxProperties":1,)"
     R"("additionalProperties":false})",
     {R"({"a":1})"},
     {"{}"}},
    {R"({"type":"object","maxProperties":2})",
     {"{}", R"({"a":1})", R"({"a":1, "b":2})"},
     {R"({"a":1,"b":2,"c":3})"}},
    {R"({"type":"object","required":["a","b"],"maxProperties":3,"minProperties":2})",
     {R"({"a":1,"b":1})", R"({"a":1,"b":1,"c":1})"},
     {R"({"a":1,"b":1,"c":1,"d":1})", R"({"a":1})", R"({"a":1,"c":1})"}},
    {R"({"type":["object","null"],"properties":{"a":{}},"maxProperties":0})",
     {"{}", "null"},
     {R"({"a":1})", R"({"b":1})"}},
    {R"({"type":"object","maxProperties":2,"minProperties":1})",
     {R"({"a":1})", R"({"a":1,"b":2})"},
     {"{}", R"({"a":1,"b":2,"c":3})"}},
    {R"({"type":["object","null"],"required":["a"],"maxProperties":0})",
     {"null"},
     {"{}", R"({"a":1})"}},
    {R"({"type":"string","format":"of my own"})", {"\"x\""}, {"1"}},
};

TEST(JsonSchema, AdmitsValidInstancesOnly)
{
    for (const SchemaCase &c : cases) {
        SCOPED_TRACE(c.schema);
        const Grammar g = Grammar::schema(c.schema);
        ASSERT_EQ(g.status, XM_OK) << g.err.text;
        for (const std::string &text : c.yes)
            EXPECT_TRUE(g.matches(text)) << text;
        for (const std::string &text : c.no)
            EXPECT_FALSE(g.matches(text)) << text;
    }
}

/* Every number with up to two decimal places, in each range. */
TEST(JsonSchema, RangesOfNumbersAreExact)
{
    const double bounds[] = {-12.5, -10,  -3, -0.75, -0.5, 0,    0.25,
                             1,     1.05, 9,  9.9,   10,   12.25};
    for (double low : bounds)
        for (double high : bounds)
            for (int kind = 0; kind < 8; kind++) {
                if (low > high)
                    continue;
                const bool low_out = kind & 1, high_out = kind & 2, whole = kind & 4;
                char schema[200];
                snprintf(schema, sizeof(schema), R"({"type":"%s","%s":%g,"%s":%g})",
                         whole ? "integer" : "number",
                         low_out ? "exclusiveMinimum" : "minimum", low,
                         high_out ? "exclusiveMaximum" : "maximum", high);
                const Grammar g = Grammar::schema(schema);
                for (int x = -1300; x <= 1300; x += whole ? 100 : 5) {
                    char text[32];
                    snprintf(text, sizeof(text), whole ? "%.0f" : "%.2f", x / 100.0);
                    const double v = x / 100.0;
                    const bool is_in = (low_out ? v > low : v >= low) &&
                                       (high_out ? v < high : v <= high);
                    bool matches = false;
                    if (g.g)
                        xm_grammar_matches(g.g, text, strlen(text), &matches, nullptr);
                    ASSERT_EQ(matches, is_in) << schema << " " << text;
                }
            }
}

const struct {
    const char *schema, *sentence;
} wrong[] = {
    {"[", "JSON Schema: "},
    {"3", "JSON Schema, at its root: expected a schema: an object, true or false"},
    {R"({"properties":{"a":{"not":{"const":1}}}})",
     "JSON Schema, /properties/a/not: numbers, arrays and objects in the keyword 'not' "
     "are"},
    {R"({"not":{"const":"a"},"type":"string","minLength":1})",
     "JSON Schema, /not: strings in the keyword 'not' are not supported beside lengths"},
    {R"({"properties":{"a":{"not":{"pattern":"b"}}}})",
     "JSON Schema, /properties/a/not: the keyword 'not' is not supported"},
    {R"({"not":{"type":"integer"}})",
     "JSON Schema, /not: the keyword 'not' is not supported"},
    {R"({"not":{}})",
     "JSON Schema, at its root: no value is valid for its keywords 'not'"},
    {R"({"not":{"properties":{"a":{"pattern":"a"}}}})",
     "JSON Schema, /not: the keyword 'not' is not supported"},
    {R"({"not":{"$ref":"#"}})", "JSON Schema, /not: the keyword 'not' is not supported"},
    {R"({"oneOf":[{"required":["a"]},{"required":["b"]},{"pattern":"a"}]})",
     "JSON Schema, /oneOf: the alternatives 0 and 2 are not known to exclude each other"},
    {R"({"if":{"pattern":"a"},"else":false})",
     "JSON Schema, /if: the keyword 'if' is not supported"},
    {R"({"if":true,"then":false})",
     "JSON Schema, /then: a value is needed here, and none is valid for false"},
    {R"({"unevaluatedProperties":false})",
     "JSON Schema, /unevaluatedProperties: the keyword 'unevaluatedProperties' is not"},
    {R"({"properties":{"a":{},"b":{}},"minProperties":2})",
     "JSON Schema, /minProperties: the keyword 'minProperties' is supported here as 1"},
    {R"({"properties":{"a":{},"b":{}},"maxProperties":1})",
     "JSON Schema, /maxProperties: the keyword 'maxProperties' is supported here as 0"},
    {R"({"properties":{"a":{},"b":{}},"maxProperties":1,"additionalProperties":false})",
     "JSON Schema, /maxProperties: the keyword 'maxProperties' is supported here as 0"},
    {R"({"enum":[{"a":1}],"maxProperties":1})",
     "JSON Schema, /maxProperties: the keyword 'maxProperties' is not supported beside"},
    {R"({"type":"object","required":["a"],"maxProperties":0})",
     "JSON Schema, at its root: no value is valid for its keywords 'type', 'required', "},
    {R"({"type":"array","uniqueItems":true})",
     "JSON Schema, /uniqueItems: the keyword 'uniqueItems' is not supported"},
    {R"({"type":"number","multipleOf":0.40961})",
     "JSON Schema, /multipleOf: the keyword 'multipleOf' is supported for whole numbers"},
    {R"({"type":"number","multipleOf":1e-31})",
     "JSON Schema, /multipleOf: the keyword 'multipleOf' is supported for whole numbers"},
    {R"({"type":"integer","multipleOf":4097})",
     "JSON Schema, /multipleOf: the keyword 'multipleOf' is supported for whole numbers"},
    {R"({"type":"integer","allOf":[{"multipleOf":101},{"multipleOf":103}]})",
     "JSON Schema, /allOf/1/multipleOf: the keyword 'multipleOf' is supported"},
    {R"({"type":"integer","multipleOf":100,"maximum":1e60})",
     "JSON Schema, /multipleOf: the keyword 'multipleOf' is supported"},
    {R"({"multipleOf":0})", "JSON Schema, /multipleOf: expected a number above 0"},
    {R"({"multipleOf":"2"})", "JSON Schema, /multipleOf: expected a number above 0"},
    {R"({"enum":[[4]],"items":{"minimum":2}})",
     "JSON Schema, /items: the keyword 'items' is not supported beside arrays and "
     "objects"},
    {R"({"enum":["ab"],"maxLength":1})",
     "JSON Schema, at its root: no value is valid for its keywords 'enum', 'maxLength'"},
    {R"j({"enum":["ab"],"pattern":"(?=a)"})j",
     "JSON Schema, /pattern: character 2: lookaround groups"},
    {R"({"type":"strin"})",
     "JSON Schema, /type: expected null, boolean, integer, number, string, array or "
     "object, or a list of these, found \"strin\""},
    {R"({"$ref":"http://x/y"})", "JSON Schema, /$ref: only references within the schema"},
    {R"({"$ref":"#/a"})", "JSON Schema, /$ref: there is no schema '#/a'"},
    {R"({"$ref":"#a","const":{"$anchor":"a"},"title":{"$anchor":"a"}})",
     "JSON Schema, /$ref: there is no schema '#a'"},
    {R"({"$ref":"a","$defs":{"b":{"$id":"b/a"}}})",
     "JSON Schema, /$ref: only references within the schema"},
    {R"({"$ref":"b","$defs":{"x":{"properties":{"y/z":{"$id":"b","enum":[]}}}}})",
     "JSON Schema, /$defs/x/properties/y~1z: no value is valid for its keywords 'enum'"},
    {R"({"$ref":"#"})",
     "JSON Schema, at its root: no value is valid: it needs one of its own"},
    {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})",
     "JSON Schema, /oneOf: the alternatives 0 and 1 are not known to exclude each other"},
    {R"j({"pattern":"(?=a)"})j", "JSON Schema, /pattern: character 2: lookaround groups"},
    {R"({"pattern":"\\bx"})",
     "JSON Schema, /pattern: character 2: this escape is not supported"},
    {R"j({"pattern":"a(^b)"})j",
     "JSON Schema, /pattern: character 3: ^ and $ are supported only"},
    {R"({"pattern":"a","maxLength":3})",
     "JSON Schema, /pattern: beside minLength or maxLength only patterns"},
    {R"({"pattern":"^a*b*$","maxLength":3})",
     "JSON Schema, /pattern: beside minLength or maxLength only patterns"},
    {R"({"format":"email","maxLength":30})",
     "JSON Schema, /format: beside minLength or maxLength only patterns"},
    {R"({"format":"date","pattern":"^2"})",
     "JSON Schema, /pattern: of pattern and format"},
    {R"({"format":"regex"})",
     "JSON Schema, /format: the format 'regex' is not supported"},
    {R"({"minLength":-1})", "JSON Schema, /minLength: expected a whole number"},
    {R"({"patternProperties":{"a":{}}})",
     "JSON Schema, /patternProperties/a: beside additional properties only patterns"},
    {R"({"patternProperties":{"^a":{},"^ab":{}}})",
     "JSON Schema, /patternProperties/^ab: patterns that a name may match together"},
    {R"({"patternProperties":{"^ab?c":{},"^ad":{}},"additionalProperties":false})",
     "JSON Schema, /patternProperties/^ad: patterns that a name may match together"},
    {R"({"patternProperties":{"b$":{}},"properties":{"ab":{}},"additionalProperties":false})",
     "JSON Schema, /patternProperties/b$: it matches a property with a name of its own"},
    {R"j({"patternProperties":{"(?=a)":{}},"properties":{"ab":{}}})j",
     "JSON Schema, /patternProperties/(?=a): the pattern: character 2: lookaround "
     "groups"},
    {R"({"patternProperties":[]})",
     "JSON Schema, /patternProperties: expected an object of schemas"},
    {"false",
     "JSON Schema, at its root: a value is needed here, and none is valid for false"},
    {R"({"type":"object","properties":{"a":false},"required":["a"]})",
     "JSON Schema, /properties/a: a value is needed here, and none is valid for false"},
    {R"({"type":"object","properties":{},"required":["a"],"additionalProperties":false})",
     "JSON Schema, /additionalProperties: a value is needed here"},
    {R"({"type":"integer","minimum":5,"maximum":4})",
     "JSON Schema, at its root: no value is valid for its keywords 'type', 'minimum', "
     "'maximum'"},
    {R"({"properties":{"b":{"enum":[]},
        "a":{"properties":{"c":{"title":"x","type":"string","const":5}},
        "required":["c"],"type":"object"}},"required":["a"],"type":"object"})",
     "JSON Schema, /properties/a/properties/c: no value is valid for its keywords "
     "'type', "
     "'const'"},
    {R"({"type":"array","minItems":1,"items":{"enum":[]}})",
     "JSON Schema, /items: no value is valid for its keywords 'enum'"},
    {R"({"type":"array","minItems":3,"maxItems":2})",
     "JSON Schema, at its root: no value is valid for its keywords 'type', 'minItems', "
     "'maxItems'"},
    {R"({"anyOf":[{"type":"string","minLength":2,"maxLength":1},{"enum":[]}]})",
     "JSON Schema, /anyOf/0: no value is valid for its keywords 'type', 'minLength', "
     "'maxLength'"},
    {R"({"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"required":["a"],
        "$defs":{"n":{"enum":[]}}})",
     "JSON Schema, /$defs/n: no value is valid for its keywords 'enum'"},
    {R"({"type":"string","allOf":[{"type":"integer"}]})",
     "JSON Schema, at its root: no value is valid for its keywords 'type', 'allOf'"},
};

/* Bounds near 0 and where the number of digits changes, and all numbers between them. */
TEST(JsonSchema, MultiplesAreExact)
{
    const int bounds[] = {-120, -99, -7, -1, 0, 1, 9, 10, 35, 100, 230};
    const int none = 1000;
    for (const int of : {1, 2, 3, 7, 10, 13, 25, 100})
        for (const int low : {none, -120, -99, -7, 0, 1, 9, 10, 35, 100})
            for (const int high : bounds)
                for (const bool is_out : {false, true}) {
                    const bool has_high = high != 230;
                    std::string schema =
                        "{\"type\":\"integer\",\"multipleOf\":" + std::to_string(of);
                    if (low != none)
                        schema += std::string(",\"") +
                                  (is_out ? "exclusiveMinimum" : "minimum") +
                                  "\":" + std::to_string(low);
                    if (has_high)
                        schema += std::string(",\"") +
                                  (is_out ? "exclusiveMaximum" : "maximum") +
                                  "\":" + std::to_string(high);
                    const Grammar g = Grammar::schema(schema + "}");
                    for (int n = -250; n <= 1250; n += n < 250 ? 1 : 50) {
                        const bool is_in =
                            n % of == 0 &&
                            (low == none || (is_out ? n > low : n >= low)) &&
                            (!has_high || (is_out ? n < high : n <= high));
                        bool is_matched = false;
                        const std::string text = std::to_string(n);
                        if (g.g)
                            xm_grammar_matches(g.g, text.data(), text.size(), &is_matched,
                                               nullptr);
                        ASSERT_EQ(is_matched, is_in) << schema << " " << n;
                    }
                }
}

/* Returns n / 100 without trailing zeros. */
std::string
hundredths(int n)
{
    char text[32];
    snprintf(text, sizeof(text), "%s%d.%02d", n < 0 ? "-" : "", abs(n) / 100,
             abs(n) % 100);
    std::string out = text;
    while (out.back() == '0')
        out.pop_back();
    if (out.back() == '.')
        out.pop_back();
    return out;
}

TEST(JsonSchema, MultiplesOfDecimalsAreExact)
{
    const int bounds[] = {-1234, -1000, -105, -100, -75, -7,  0,
                          1,     10,    99,   100,  325, 1000};
    for (const int of : {1, 7, 25, 150})
        for (const int low : bounds)
            for (const int high : bounds)
                for (const int is_out : {0, 1, 2}) {
                    if (high < low)
                        continue;
                    std::string schema =
                        R"({"type":"number","multipleOf":)" + hundredths(of);
                    schema += is_out == 1 ? R"(,"exclusiveMinimum":)" : R"(,"minimum":)";
                    schema += hundredths(low);
                    schema += is_out == 2 ? R"(,"exclusiveMaximum":)" : R"(,"maximum":)";
                    schema += hundredths(high) + "}";
                    const Grammar g = Grammar::schema(schema);
                    for (int n = -1300; n <= 1300; n += abs(n) < 120 ? 1 : 5) {
                        const bool is_in = n % of == 0 &&
                                           (is_out == 1 ? n > low : n >= low) &&
                                           (is_out == 2 ? n < high : n <= high);
                        bool is_matched = false;
                        const std::string text = hundredths(n);
                        if (g.g)
                            xm_grammar_matches(g.g, text.data(), text.size(), &is_matched,
                                               nullptr);
                        ASSERT_EQ(is_matched, is_in)
                            << schema << " " << text << " " << g.err.text;
                    }
                }
}

/* Each prefix of a number can be completed to a multiple: a text does not get stuck. */
TEST(JsonSchema, MultiplesLeaveNoDeadEnds)
{
    for (const char *schema :
         {R"({"type":"integer","multipleOf":50,"minimum":120,"maximum":949})",
          R"({"type":"integer","multipleOf":499,"maximum":123456})",
          R"({"type":"number","multipleOf":0.75,"minimum":1.2,"exclusiveMaximum":9})",
          R"({"type":"number","multipleOf":0.07,"maximum":-0.5})",
          R"({"type":"integer","multipleOf":128,"minimum":1000})"}) {
        const Grammar g = Grammar::schema(schema);
        ASSERT_EQ(g.status, XM_OK) << g.err.text;
        std::vector<std::string> texts = {""};
        for (size_t i = 0; i < texts.size() && texts[i].size() < 4; i++) {
            bool matches = false, goes_on = false;
            xm_grammar_matches(g.g, texts[i].data(), texts[i].size(), &matches, nullptr);
            for (char d : std::string("-.0123456789"))
                if (xm_grammar_may_begin(g.g, (texts[i] + d).data(),
                                         texts[i].size() + 1)) {
                    goes_on = true;
                    texts.push_back(texts[i] + d);
                }
            EXPECT_TRUE(matches || goes_on) << schema << " " << texts[i];
        }
    }
}

TEST(JsonSchema, SaysByPlaceWhatIsNotSupported)
{
    for (const auto &c : wrong) {
        SCOPED_TRACE(c.schema);
        const Grammar g = Grammar::schema(c.schema);
        EXPECT_NE(g.status, XM_OK);
        EXPECT_EQ(std::string(g.err.text).substr(0, strlen(c.sentence)), c.sentence);
    }
}

TEST(JsonSchema, IsBoundedInDepthSizeAndTime)
{
    std::string deep, choices = "{\"allOf\":[";
    for (int i = 0; i < 100000; i++)
        deep += "{\"items\":";
    EXPECT_NE(Grammar::schema(deep + "1").status, XM_OK);
    for (int i = 0; i < 40; i++) /* 2^40 combinations */
        choices +=
            std::string(i ? "," : "") + R"({"anyOf":[{"minimum":1},{"maximum":2}]})";
    EXPECT_EQ(Grammar::schema(choices + "]}").status, XM_UNSUPPORTED);

    std::string many = "{\"type\":\"object\",\"properties\":{";
    for (int i = 0; i < 2000; i++)
        many += std::string(i ? "," : "") + "\"p" + std::to_string(i) +
                "\":{\"type\":\"string\"}";
    const Grammar g = Grammar::schema(many + "}}");
    ASSERT_EQ(g.status, XM_OK) << g.err.text;
    EXPECT_TRUE(g.matches(R"({"p3":"a","p1999":"b","q":1})"));
    EXPECT_FALSE(g.matches(R"({"p3":"a","p3":"b"})"));

    /* Following references to find out whether alternatives exclude each other is bounded. */
    std::string
        self = R"({"oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":)"
               R"({"type":"object","required":[)",
        properties;
    for (int i = 0; i < 20; i++) {
        const std::string name = "\"p" + std::to_string(i) + "\"";
        self += (i ? "," : "") + name;
        properties += (i ? "," : "") + name + R"(:{"$ref":"#/$defs/a"})";
    }
    const Grammar twice =
        Grammar::schema(self + "],\"properties\":{" + properties + "}}}}");
    EXPECT_EQ(twice.status, XM_UNSUPPORTED);
    EXPECT_NE(std::string(twice.err.text).find("too many combinations"),
              std::string::npos)
        << twice.err.text;
}

std::string
times(const std::string &text, size_t n)
{
    std::string all;
    for (size_t i = 0; i < n; i++)
        all += text;
    return all;
}

/* Deep nesting by a schema's author is refused before it is followed recursively. */
/* Comparing two lists of values takes the product of their lengths, which counts as work; a list
 * alone takes its length. */
TEST(JsonSchema, LongListsOfValuesAreNoEndlessWork)
{
    std::string list = "[0";
    for (int i = 1; i < 60000; i++)
        list += "," + std::to_string(i);
    list += "]";
    xm_error err = {};
    xm_grammar *g = nullptr;
    const std::string both =
        R"({"enum":)" + list + R"(,"allOf":[{"enum":)" + list + "}]}";
    EXPECT_EQ(xm_grammar_from_schema(both.data(), both.size(), &g, &err), XM_UNSUPPORTED);
    EXPECT_NE(std::string(err.text).find("too many combinations"), std::string::npos)
        << err.text;
    xm_grammar_free(g);
}

/* The error names the place where a limit of the grammar was exceeded: of states, and of parts. */
TEST(JsonSchema, NamesThePlaceThatIsTooLarge)
{
    const auto with_values = [](int n, bool are_distinct) {
        std::string list = "0";
        for (int i = 1; i < n; i++)
            list += "," + std::to_string(are_distinct ? i : i % 10);
        return R"({"properties":{"few":{"enum":[1,2,3]},"many":{"items":{"enum":[)" +
               list + R"(]}},"none":{"type":"null"}}})";
    };
    const Grammar states = Grammar::schema(with_values(140000, true));
    EXPECT_EQ(states.status, XM_UNSUPPORTED);
    EXPECT_STREQ(states.err.text,
                 "JSON Schema, /properties/many/items: the grammar is too large: it "
                 "needs more than 262144 states");
    const Grammar parts = Grammar::schema(with_values(1100000, false));
    EXPECT_EQ(parts.status, XM_UNSUPPORTED);
    EXPECT_STREQ(
        parts.err.text,
        "JSON Schema, /properties/many/items: the grammar is too large: at most 1048576 "
        "nodes, 65536 rules, and 4096 ranges in a character class are supported");
    const Grammar good = Grammar::schema(with_values(60000, true));
    EXPECT_EQ(good.status, XM_OK) << good.err.text;
}

TEST(JsonSchema, RefusesWhatIsTooDeepForTheStack)
{
    const std::string name(200000, 'a');
    const Grammar pattern =
        Grammar::schema(R"({"type":"object","patternProperties":{"^)" + name +
                        R"(":{"type":"string"}}})");
    EXPECT_EQ(pattern.status, XM_UNSUPPORTED);
    EXPECT_NE(
        std::string(pattern.err.text).find("begins with more than 256 bytes of plain"),
        std::string::npos)
        << pattern.err.text;
    EXPECT_EQ(Grammar::schema(R"({"patternProperties":{"^)" + std::string(257, 'a') +
                              R"(":{}}})")
                  .status,
              XM_UNSUPPORTED);
    const std::string longest(256, 'a');
    const Grammar fits = Grammar::schema(R"({"patternProperties":{"^)" + longest +
                                         R"(":{"type":"null"}}})");
    ASSERT_EQ(fits.status, XM_OK) << fits.err.text;
    EXPECT_TRUE(fits.matches("{\"" + longest + "b\":null}"));
    EXPECT_FALSE(fits.matches("{\"" + longest + "b\":1}"));

    const std::string value = times("[", 400000) + times("]", 400000);
    for (const std::string &schema :
         {"{\"const\":" + value + "}", "{\"enum\":[1," + value + "]}",
          "{\"oneOf\":[{\"const\":" + value + "},{\"const\":" + value + "}]}"}) {
        const Grammar g = Grammar::schema(schema);
        EXPECT_EQ(g.status, XM_UNSUPPORTED);
        EXPECT_NE(std::string(g.err.text).find("nested more than"), std::string::npos)
            << g.err.text;
    }

    /* Each element is nested in the one before it, so that lists in lists multiply. */
    const std::string before =
        "{\"type\":\"array\",\"prefixItems\":[" + times("true,", 127);
    const Grammar lists = Grammar::schema(times(before, 100) + "true" + times("]}", 100));
    EXPECT_EQ(lists.status, XM_UNSUPPORTED);
    EXPECT_NE(std::string(lists.err.text).find("nested deeper than"), std::string::npos)
        << lists.err.text;
}

TEST(Gbnf, ManyDifferentClassesTakeTimeInProportion)
{
    std::string gbnf = "root ::= [a]";
    for (int i = 0x4e00; i < 0x4e00 + 20000; i++) {
        const auto c = [](int code) {
            return std::string{(char)(0xe0 | code >> 12), (char)(0x80 | (code >> 6 & 63)),
                               (char)(0x80 | (code & 63))};
        };
        gbnf += " [" + c(i) + c(i + 2) + "]";
    }
    const Grammar g = Grammar::gbnf(gbnf);
    ASSERT_EQ(g.status, XM_OK) << g.err.text;
    EXPECT_FALSE(g.matches("a")) << "all of them follow";
}

TEST(JsonSchema, FailsCleanlyWithoutMemory)
{
    const std::string text =
        R"({"type":"object","properties":{"a":{"pattern":"^[a-z]+$","maxLength":9},)"
        R"("b":{"minimum":1.5},"d":{"multipleOf":3,"type":"integer"},)"
        R"("e":{"enum":["a","b"],"pattern":"^a"},)"
        R"("c":{"$ref":"#"},"h":{"oneOf":[{"minimum":3},{"maximum":5}]},)"
        R"("f":{"$ref":"x"},"g":{"$id":"x"}},)"
        R"("patternProperties":{"^x":{"maxLength":3}},)"
        R"("minProperties":1,"required":["a"],"anyOf":[{"type":"object"},{"enum":[1]}]})";
    for (uint64_t n = 1;; n++) {
        xm_grammar *g = nullptr;
        xm_error err = {};
        xm_fail_allocation(n);
        const xm_status s = xm_grammar_from_schema(text.data(), text.size(), &g, &err);
        const bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_EQ(s == XM_OK, g != nullptr);
        EXPECT_TRUE(seen ? s == XM_NO_MEMORY || s == XM_OK : s == XM_OK)
            << n << " " << err.text;
        xm_grammar_free(g);
        if (!seen)
            return;
    }
}

} // namespace
