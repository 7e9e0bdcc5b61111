/*
 * One value of a packet.
 */
#ifndef MRNET_DATAELEMENT_H
#define MRNET_DATAELEMENT_H

#include "mrnet/Types.h"

namespace MRN {

/* The type of a directive without its percent sign; UNKNOWN_T for what is none. */
DataType Fmt2Type(const char* directive);

typedef union {
    char c;
    unsigned char uc;
    int16_t hd;
    uint16_t uhd;
    int32_t d;
    uint32_t ud;
    int64_t ld;
    uint64_t uld;
    float f;
    double lf;
    const void* p;
} DataValue;

class DataElement {
  public:
    DataElement();
    DataElement(const DataElement& other);
    DataElement& operator=(const DataElement& other);
    ~DataElement();

    DataType get_Type() const;

    char get_char() const;
    unsigned char get_uchar() const;
    int16_t get_int16_t() const;
    uint16_t get_uint16_t() const;
    int32_t get_int32_t() const;
    uint32_t get_uint32_t() const;
    int64_t get_int64_t() const;
    uint64_t get_uint64_t() const;
    float get_float() const;
    double get_double() const;
    const char* get_string() const;
    /* The elements, lent; their type and number are put where the pointers say. */
    const void* get_array(DataType* type, uint64_t* length) const;
    const void* get_array(DataType* type, uint32_t* length) const;

    void set_char(char value);
    void set_uchar(unsigned char value);
    void set_int16_t(int16_t value);
    void set_uint16_t(uint16_t value);
    void set_int32_t(int32_t value);
    void set_uint32_t(uint32_t value);
    void set_int64_t(int64_t value);
    void set_uint64_t(uint64_t value);
    void set_float(float value);
    void set_double(double value);
    void set_string(const char* value);
    void set_array(const void* elements, DataType type, uint64_t length);
    void set_array(const void* elements, DataType type, uint32_t length);

    /* Whether the element frees what it points to. */
    void set_DestroyData(bool destroy);

    DataValue val;

  private:
    friend class Packet;
    void release();

    DataType type_;
    uint64_t length_;
    bool destroys_;
};

}  // namespace MRN

#endif
