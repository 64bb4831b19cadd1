/* The variables by which CPython is found. What they hold is the input's. */
char _PyRuntime[1280];
unsigned Py_Version;
char PyCode_Type[8], PyUnicode_Type[8], PyBytes_Type[8], PyFrame_Type[8];
