/* SPDX-License-Identifier: MIT */
#include "usb.h"

#include <stdbool.h>
#include <stddef.h>

#include "link.h"
#include "rp2040.h"

#define PACKET 64u
#define ENDPOINT_NOTIFY 1u
#define ENDPOINT_DATA 2u

/* The controller's memory (datasheet 4.1.2.4): setup packet, endpoint and buffer control, buffers. */
#define EP_IN_CONTROL(endpoint) REGISTER(USBCTRL_DPRAM_BASE + 8u * (endpoint))
#define EP_OUT_CONTROL(endpoint) REGISTER(USBCTRL_DPRAM_BASE + 8u * (endpoint) + 4u)
#define BUFFER_IN_CONTROL(endpoint) (USBCTRL_DPRAM_BASE + 0x80u + 8u * (endpoint))
#define BUFFER_OUT_CONTROL(endpoint) (USBCTRL_DPRAM_BASE + 0x84u + 8u * (endpoint))
#define BUFFER_CONTROL_0 0x100u
#define BUFFER_NOTIFY 0x180u
#define BUFFER_OUT 0x1c0u
#define BUFFER_IN 0x200u
#define STATUS_IN(endpoint) (1u << (2u * (endpoint)))
#define STATUS_OUT(endpoint) (1u << (2u * (endpoint) + 1u))

enum request {
	GET_STATUS = 0,
	CLEAR_FEATURE = 1,
	SET_FEATURE = 3,
	SET_ADDRESS = 5,
	GET_DESCRIPTOR = 6,
	GET_CONFIGURATION = 8,
	SET_CONFIGURATION = 9,
	GET_INTERFACE = 10,
	SET_INTERFACE = 11,
	CDC_SET_LINE_CODING = 0x20,
	CDC_GET_LINE_CODING = 0x21,
	CDC_SET_CONTROL_LINE_STATE = 0x22,
	CDC_SEND_BREAK = 0x23,
};

static const uint8_t device_descriptor[] = {
	18,	1,    0x00, 0x02,	/* USB 2.0 */
	2,	0,    0,		/* class CDC */
	PACKET, 0x09, 0x12, 0x01, 0x00, /* 1209:0001, the number for tests of pid.codes */
	0x00,	0x01, 1,    2,	  3,	1,
};

static const uint8_t configuration_descriptor[] = {
	9,    2,      67,
	0,    2,      1,
	0,    0x80,   50, /* two interfaces, bus-powered, 100 mA */
	9,    4,      0,
	0,    1,      2,
	2,    0,      0, /* interface 0: CDC, ACM */
	5,    0x24,   0,
	0x10, 0x01, /* CDC 1.10 */
	5,    0x24,   1,
	0,    1, /* call management: none */
	4,    0x24,   2,
	2, /* ACM: line coding */
	5,    0x24,   6,
	0,    1, /* union of 0 and 1 */
	7,    5,      0x80 | ENDPOINT_NOTIFY,
	3,    8,      0,
	255, /* interrupt, never used */
	9,    4,      1,
	0,    2,      10,
	0,    0,      0, /* interface 1: data */
	7,    5,      ENDPOINT_DATA,
	2,    PACKET, 0,
	0, /* bulk out */
	7,    5,      0x80 | ENDPOINT_DATA,
	2,    PACKET, 0,
	0, /* bulk in */
};

static char serial_number[17];
static const char *const strings[] = {"", "rtgauge", "rtgauge instrument", serial_number};

static uint8_t line_coding[7] = {0x00, 0xc2, 0x01, 0x00, 0, 0, 8}; /* kept for the host; it changes nothing */
static uint8_t reply[PACKET + 4];
static const uint8_t *control_data;
static size_t control_left;
static bool control_zero_packet; /* a reply of whole packets, shorter than was asked for, ends with an empty
				    one */
static bool control_data1;
static bool control_line_coding;
static uint8_t address;
static uint8_t configuration;
static bool in_busy;
static bool in_data1;
static bool out_data1;

static void copy_in(uint32_t offset, const uint8_t *bytes, size_t size)
{
	volatile uint8_t *buffer = (volatile uint8_t *)(uintptr_t)(USBCTRL_DPRAM_BASE + offset);

	for (size_t i = 0; i < size; i++)
		buffer[i] = bytes[i];
}

static void copy_out(uint8_t *bytes, uint32_t offset, size_t size)
{
	const volatile uint8_t *buffer = (const volatile uint8_t *)(uintptr_t)(USBCTRL_DPRAM_BASE + offset);

	for (size_t i = 0; i < size; i++)
		bytes[i] = buffer[i];
}

/* The other bits must be there some cycles of the USB clock before the controller is told
 * (datasheet 4.1.2.5.1). */
static void hand_over(uint32_t control, uint32_t bits)
{
	REGISTER(control) = bits;
	__asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop");
	REGISTER(control) = bits | USB_BUFFER_AVAILABLE;
}

static void control_send(void)
{
	size_t size = control_left < PACKET ? control_left : PACKET;

	copy_in(BUFFER_CONTROL_0, control_data, size);
	control_data += size;
	control_left -= size;
	if (size < PACKET)
		control_zero_packet = false;
	hand_over(BUFFER_IN_CONTROL(0),
		  (uint32_t)size | USB_BUFFER_FULL | (control_data1 ? USB_BUFFER_DATA1 : 0));
	control_data1 = !control_data1;
}

static void control_receive(void)
{
	hand_over(BUFFER_OUT_CONTROL(0), PACKET | USB_BUFFER_DATA1);
}

static void control_acknowledge(void)
{
	control_left = 0;
	control_zero_packet = false;
	hand_over(BUFFER_IN_CONTROL(0), USB_BUFFER_FULL | USB_BUFFER_DATA1);
}

static void control_stall(void)
{
	REGISTER(USB_EP_STALL_ARM) = 3;
	REGISTER(BUFFER_IN_CONTROL(0)) = USB_BUFFER_STALL;
	REGISTER(BUFFER_OUT_CONTROL(0)) = USB_BUFFER_STALL;
}

static void control_reply(const uint8_t *bytes, size_t size, size_t asked)
{
	control_data = bytes;
	control_left = size < asked ? size : asked;
	control_zero_packet = size < asked && size % PACKET == 0;
	control_send();
}

static void data_receive(void)
{
	hand_over(BUFFER_OUT_CONTROL(ENDPOINT_DATA), PACKET | (out_data1 ? USB_BUFFER_DATA1 : 0));
	out_data1 = !out_data1;
}

static void configure(uint8_t value)
{
	configuration = value;
	in_busy = false;
	in_data1 = false;
	out_data1 = false;
	link_reset();
	if (value == 0)
		return;
	EP_IN_CONTROL(ENDPOINT_NOTIFY) = USB_EP_CONTROL_ENABLE | USB_EP_CONTROL_INTERRUPT_PER_BUFFER |
					 USB_EP_CONTROL_INTERRUPT | BUFFER_NOTIFY;
	EP_OUT_CONTROL(ENDPOINT_DATA) = USB_EP_CONTROL_ENABLE | USB_EP_CONTROL_INTERRUPT_PER_BUFFER |
					USB_EP_CONTROL_BULK | BUFFER_OUT;
	EP_IN_CONTROL(ENDPOINT_DATA) =
		USB_EP_CONTROL_ENABLE | USB_EP_CONTROL_INTERRUPT_PER_BUFFER | USB_EP_CONTROL_BULK | BUFFER_IN;
	data_receive();
}

static bool descriptor(unsigned type, unsigned index, size_t asked)
{
	size_t size = 2;

	if (type == 1) {
		control_reply(device_descriptor, sizeof(device_descriptor), asked);
		return true;
	}
	if (type == 2) {
		control_reply(configuration_descriptor, sizeof(configuration_descriptor), asked);
		return true;
	}
	if (type != 3 || index >= sizeof(strings) / sizeof(strings[0]))
		return false;
	if (index == 0) {
		reply[2] = 0x09; /* English */
		reply[3] = 0x04;
		size = 4;
	}
	for (const char *letter = strings[index]; *letter; letter++) {
		reply[size++] = (uint8_t)*letter;
		reply[size++] = 0;
	}
	reply[0] = (uint8_t)size;
	reply[1] = 3;
	control_reply(reply, size, asked);
	return true;
}

static bool control(const uint8_t setup[8])
{
	unsigned value = setup[2] | (unsigned)setup[3] << 8;
	size_t asked = setup[6] | (size_t)setup[7] << 8;

	switch (setup[1]) {
	case GET_STATUS:
		reply[0] = 0;
		reply[1] = 0;
		control_reply(reply, 2, asked);
		return true;
	case SET_ADDRESS:
		address = (uint8_t)(value & 0x7fu);
		control_acknowledge();
		return true;
	case GET_DESCRIPTOR:
		return descriptor(value >> 8, value & 0xffu, asked);
	case GET_CONFIGURATION:
		reply[0] = configuration;
		control_reply(reply, 1, asked);
		return true;
	case SET_CONFIGURATION:
		configure((uint8_t)value);
		control_acknowledge();
		return true;
	case GET_INTERFACE:
		reply[0] = 0;
		control_reply(reply, 1, asked);
		return true;
	case CDC_GET_LINE_CODING:
		control_reply(line_coding, sizeof(line_coding), asked);
		return true;
	case CDC_SET_LINE_CODING:
		control_line_coding = true;
		control_receive();
		return true;
	case CLEAR_FEATURE:
	case SET_FEATURE:
	case SET_INTERFACE:
	case CDC_SET_CONTROL_LINE_STATE:
	case CDC_SEND_BREAK:
		control_acknowledge();
		return true;
	default:
		return false;
	}
}

static void setup_received(void)
{
	uint8_t setup[8];

	REGISTER(USB_SIE_STATUS) = USB_SIE_STATUS_SETUP_REC;
	copy_out(setup, 0, sizeof(setup));
	control_data = NULL;
	control_data1 = true;
	control_left = 0;
	control_zero_packet = false;
	control_line_coding = false;
	if (!control(setup))
		control_stall();
}

static void control_sent(void)
{
	if (address != 0) {
		REGISTER(USB_ADDR_ENDP) = address;
		address = 0;
	}
	if (control_left > 0 || control_zero_packet)
		control_send();
	else if (control_data != NULL) {
		control_data = NULL;
		control_receive(); /* the host's empty packet */
	}
}

static void control_received(void)
{
	if (!control_line_coding)
		return;
	control_line_coding = false;
	copy_out(line_coding, BUFFER_CONTROL_0, sizeof(line_coding));
	control_acknowledge();
}

static void data_received(void)
{
	uint8_t packet[PACKET];
	size_t size = REGISTER(BUFFER_OUT_CONTROL(ENDPOINT_DATA)) & USB_BUFFER_LENGTH;

	if (size > PACKET)
		size = PACKET;
	copy_out(packet, BUFFER_OUT, size);
	data_receive();
	link_put(packet, size);
}

static void data_send(void)
{
	static bool full; /* a transfer that ends with a full packet is closed by an empty one */
	const uint8_t *packet;
	size_t size = link_take(&packet, PACKET);

	if (size == 0 && !full)
		return;
	full = size == PACKET;
	copy_in(BUFFER_IN, packet, size);
	in_busy = true;
	hand_over(BUFFER_IN_CONTROL(ENDPOINT_DATA),
		  (uint32_t)size | USB_BUFFER_FULL | (in_data1 ? USB_BUFFER_DATA1 : 0));
	in_data1 = !in_data1;
}

static void bus_reset(void)
{
	REGISTER(USB_SIE_STATUS) = USB_SIE_STATUS_BUS_RESET;
	REGISTER(USB_ADDR_ENDP) = 0;
	address = 0;
	control_data = NULL;
	configure(0);
}

void usb_start(const uint8_t id[8])
{
	for (unsigned i = 0; i < 16; i++)
		serial_number[i] = "0123456789ABCDEF"[(i % 2 ? id[i / 2] : id[i / 2] >> 4) & 0xfu];
	for (uint32_t offset = 0; offset < 0x100u; offset += 4)
		REGISTER(USBCTRL_DPRAM_BASE + offset) = 0;
	REGISTER(USB_USB_MUXING) = USB_MUXING_TO_PHY | USB_MUXING_SOFTCON;
	REGISTER(USB_USB_PWR) = USB_PWR_VBUS_DETECT | USB_PWR_VBUS_DETECT_OVERRIDE_EN;
	REGISTER(USB_MAIN_CTRL) = USB_MAIN_CTRL_CONTROLLER_EN;
	REGISTER(USB_SIE_CTRL) = USB_SIE_CTRL_EP0_INT_1BUF;
	REGISTER(USB_INTE) = USB_INT_BUFF_STATUS | USB_INT_BUS_RESET | USB_INT_SETUP_REQ;
	ALIAS_SET(USB_SIE_CTRL) = USB_SIE_CTRL_PULLUP_EN;
}

bool usb_pending(void)
{
	return REGISTER(USB_INTS) != 0 || (configuration != 0 && !in_busy && link_waiting());
}

void usb_poll(void)
{
	uint32_t interrupts = REGISTER(USB_INTS);

	if (interrupts & USB_INT_BUS_RESET)
		bus_reset();
	if (interrupts & USB_INT_BUFF_STATUS) {
		uint32_t status = REGISTER(USB_BUFF_STATUS);

		REGISTER(USB_BUFF_STATUS) = status;
		if (status & STATUS_IN(0))
			control_sent();
		if (status & STATUS_OUT(0))
			control_received();
		if (status & STATUS_IN(ENDPOINT_DATA))
			in_busy = false;
		if (status & STATUS_OUT(ENDPOINT_DATA))
			data_received();
	}
	/* After the buffers: what is left of the transfer before must not be mistaken for one of the new. */
	if (interrupts & USB_INT_SETUP_REQ)
		setup_received();
	if (configuration != 0 && !in_busy)
		data_send();
}
