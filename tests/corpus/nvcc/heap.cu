// malloc, free, new and delete in device code.
struct Node { int value; Node *next; __device__ Node(int v, Node *n) : value(v), next(n) {} };

extern "C" __global__ void build_list(int n, int *out)
{
    Node *head = nullptr;
    for (int i = 0; i < n; i++)
        head = new Node(i, head);
    int total = 0;
    while (head) {
        total += head->value;
        Node *next = head->next;
        delete head;
        head = next;
    }
    char *raw = (char *)malloc(n);
    if (raw) {
        raw[n / 2] = 1;
        total += raw[n / 2];
        free(raw);
    }
    *out = total;
}
