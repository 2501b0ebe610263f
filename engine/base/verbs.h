/* SPDX-License-Identifier: MIT */
/*
 * The engine's verbs. A verb registers itself before main begins, with one of the two macros at the end of
 * its own file. There is no other list.
 */
#ifndef RTGAUGE_VERBS_H
#define RTGAUGE_VERBS_H

enum verb_kind { VERB_PROBE, VERB_AGENT };

struct verb {
	const char *name, *help;
	enum verb_kind kind;
	/* argv[0] is the verb's name. Returns the exit status (docs/formats/stream.md, `error`). */
	int (*run)(int argc, char **argv);
};

#define VERBS_MAX 63

/* Probes come first. Each kind is sorted by name. NULL after the last verb. */
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

/* A verb that measures. */
#define PROBE(name, run, help) VERB(VERB_PROBE, name, run, help)

/* A verb that does something else on a target (docs/formats/agent.md). */
#define AGENT_VERB(name, run, help) VERB(VERB_AGENT, name, run, help)

#endif
