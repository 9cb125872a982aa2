// A quarter turn of an image of interleaved bytes with pitched rows; source and target are structs by value. Unoptimised.
// flags: -O0
#include "gpu.h"

struct Bitmap {
    unsigned char *pixels;
    unsigned short width, height;
    int pitch;
    unsigned char channels;
};

extern "C" GLOBAL void rot90_image(Bitmap from, Bitmap to, unsigned char fill)
{
    int x = block_x() * width_x() + thread_x();
    int y = block_y() * width_y() + thread_y();
    if (x >= to.width || y >= to.height)
        return;
    int sx = from.width - 1 - y, sy = x;
    unsigned char *target = to.pixels + y * to.pitch + x * to.channels;
    for (int c = 0; c < to.channels; ++c) {
        if (sx >= 0 && sy < from.height && c < from.channels)
            target[c] = from.pixels[sy * from.pitch + sx * from.channels + c];
        else
            target[c] = fill;
    }
}
