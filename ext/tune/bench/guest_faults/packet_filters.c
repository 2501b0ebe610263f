// SPDX-License-Identifier: MIT
/* Makes each received packet expensive: N packet sockets, whose socket filters of 4000 instructions run in
 * the softirq after the interrupt.
 */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define LENGTH 4000

int main(int argc, char **argv)
{
	static struct sock_filter filter[LENGTH];
	struct sock_fprog program = {LENGTH, filter};

	for (int i = 0; i < LENGTH - 1; i++)
		filter[i] = (struct sock_filter){BPF_ALU | BPF_ADD | BPF_K, 0, 0, 1};
	filter[LENGTH - 1] = (struct sock_filter){BPF_RET | BPF_K, 0, 0, 0};
	for (int i = argc > 1 ? atoi(argv[1]) : 1; i > 0; i--) {
		int receiver = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_IP));

		if (receiver < 0 ||
		    setsockopt(receiver, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) < 0) {
			perror("packet_filters");
			return 1;
		}
	}
	pause();
}
