// SPDX-License-Identifier: BSD-3-Clause
// One end of a rule of verbs, for hosts_test.py: the other one is in another process.
//   verbs_rules names                     says the names of the rules
//   verbs_rules SOCKET ask RULE poll      makes the requests of a rule
//   verbs_rules SOCKET serve RULE poll    has the memory and the receives for them
// "wait" instead of "poll": asleep until completions come. With "granted" behind it memory is
// direct, and rules that go by it wait for the daemons' grant.
// Each says "here LID QPN KEY ADDRESS", and expects the same words of the other end in a line.
#include <string>

#include "rules.hpp"

using namespace verbs_test;

int main(int argc, char **argv)
{
    setvbuf(stdout, nullptr, _IOLBF, 0);
    std::vector<Rule> rules;
    for (const std::span<const Rule> some :
         {rules_of_order(), rules_of_requests(), rules_of_errors(), rules_of_receives(),
          rules_of_datagrams()})
        rules.insert(rules.end(), some.begin(), some.end());
    if (argc == 2 && std::string(argv[1]) == "names") {
        for (const Rule &rule : rules)
            puts(rule.name);
        return 0;
    }
    if (argc < 5)
        return 2;
    const std::string what = argv[2], name = argv[3], how = argv[4];
    const auto rule =
        std::find_if(rules.begin(), rules.end(), [&](const Rule &one) { return one.name == name; });
    if (rule == rules.end())
        return 2;
    {
        Side side(argv[1], how == "wait", argc > 5);
        side.meet();
        (what == "ask" ? rule->ask : rule->serve)(side);
        // Who ends first would take from the other one what it waits for.
        side.agree();
    }
    puts("done");
    return 0;
}
