/* SPDX-License-Identifier: MIT */
/*
 * What the engine can do, a verb each. A verb registers itself, by one of the two macros at the end of its
 * own file, before main begins: there is no other list of them.
 */
#ifndef RTGAUGE_VERBS_H
#define RTGAUGE_VERBS_H

enum verb_kind { VERB_PROBE, VERB_AGENT };

struct verb {
	const char *name, *help;
	enum verb_kind kind;
	/* argv[0] is the verb's own name. Gives the exit status (docs/formats/stream.md, `error`). */
	int (*run)(int argc, char **argv);
};

#define VERBS_MAX 63

/* Probes first, each kind by name; NULL after the last one. */
extern const struct verb *verbs[VERBS_MAX + 1];

void verb_register(const struct verb *verb);

#define VERB(kind_, name_, run_, help_)                                                                      \
	__attribute__((constructor)) static void register_verb(void)                                         \
	{                                                                                                    \
		static const struct verb verb = {                                                            \
			.name = (name_), .help = (help_), .kind = (kind_), .run = (run_)};                   \
                                                                                                             \
		verb_register(&verb);                                                                        \
	}

/* What measures. */
#define PROBE(name, run, help) VERB(VERB_PROBE, name, run, help)

/* What else must happen on a target (docs/formats/agent.md). */
#define AGENT_VERB(name, run, help) VERB(VERB_AGENT, name, run, help)

#endif
