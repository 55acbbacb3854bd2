/* SPDX-License-Identifier: BSD-3-Clause */
/* A libibverbs of another private ABI, for a test of what is said of it. */
void verbs_set_ops(void);
void verbs_set_ops(void) {}
