/*
 * Values of packets, one by one.
 */
#include <cstdlib>
#include <cstring>
#include <string>

#include "contents.hpp"

namespace MRN {

namespace {

/* The types of a directive by the low four bits of its code, and their arrays. */
struct Row {
    DataType scalar, array, large;
};

const Row TYPES[] = {
    {UNKNOWN_T, UNKNOWN_T, UNKNOWN_T},
    {CHAR_T, CHAR_ARRAY_T, CHAR_LRG_ARRAY_T},
    {UCHAR_T, UCHAR_ARRAY_T, UCHAR_LRG_ARRAY_T},
    {INT16_T, INT16_ARRAY_T, INT16_LRG_ARRAY_T},
    {UINT16_T, UINT16_ARRAY_T, UINT16_LRG_ARRAY_T},
    {INT32_T, INT32_ARRAY_T, INT32_LRG_ARRAY_T},
    {UINT32_T, UINT32_ARRAY_T, UINT32_LRG_ARRAY_T},
    {INT64_T, INT64_ARRAY_T, INT64_LRG_ARRAY_T},
    {UINT64_T, UINT64_ARRAY_T, UINT64_LRG_ARRAY_T},
    {FLOAT_T, FLOAT_ARRAY_T, FLOAT_LRG_ARRAY_T},
    {DOUBLE_T, DOUBLE_ARRAY_T, DOUBLE_LRG_ARRAY_T},
    {STRING_T, STRING_ARRAY_T, STRING_LRG_ARRAY_T},
};

DataType type_of_code(uint8_t code)
{
    const Row& row = TYPES[(code & 0x0f) <= SAPWOOD_TYPE_STRING ? code & 0x0f : 0];
    switch (code & 0xf0) {
    case SAPWOOD_SHAPE_SCALAR: return row.scalar;
    case SAPWOOD_SHAPE_ARRAY: return row.array;
    default: return row.large;
    }
}

bool is_array(DataType type)
{
    for (const Row& row : TYPES)
        if (type != UNKNOWN_T && (row.array == type || row.large == type))
            return true;
    return false;
}

}  // namespace

DataType Fmt2Type(const char* directive)
{
    uint8_t code;
    size_t count;
    std::string format = std::string("%") + (directive == NULL ? "" : directive);
    if (sapwood_format_parse(format.c_str(), &code, 1, &count, NULL) != SAPWOOD_OK || count != 1)
        return UNKNOWN_T;
    return type_of_code(code);
}

DataElement::DataElement() : type_(UNKNOWN_T), length_(0), destroys_(false)
{
    memset(&val, 0, sizeof val);
}

DataElement::DataElement(const DataElement& other)
    : val(other.val), type_(other.type_), length_(other.length_), destroys_(false)
{
}

DataElement& DataElement::operator=(const DataElement& other)
{
    if (this != &other) {
        release();
        val = other.val;
        type_ = other.type_;
        length_ = other.length_;
    }
    return *this;
}

DataElement::~DataElement()
{
    release();
}

void DataElement::release()
{
    if (destroys_ && (type_ == STRING_T || is_array(type_)))
        free(const_cast<void*>(val.p));
    destroys_ = false;
}

void DataElement::set_DestroyData(bool destroy)
{
    destroys_ = destroy;
}

DataType DataElement::get_Type() const
{
    return type_;
}

#define MRN_SCALAR(name, ctype, member, data_type)   \
    ctype DataElement::get_##name() const            \
    {                                                \
        return val.member;                           \
    }                                                \
    void DataElement::set_##name(ctype value)        \
    {                                                \
        release();                                   \
        val.member = value;                          \
        type_ = data_type;                           \
        length_ = 1;                                 \
    }

MRN_SCALAR(char, char, c, CHAR_T)
MRN_SCALAR(uchar, unsigned char, uc, UCHAR_T)
MRN_SCALAR(int16_t, int16_t, hd, INT16_T)
MRN_SCALAR(uint16_t, uint16_t, uhd, UINT16_T)
MRN_SCALAR(int32_t, int32_t, d, INT32_T)
MRN_SCALAR(uint32_t, uint32_t, ud, UINT32_T)
MRN_SCALAR(int64_t, int64_t, ld, INT64_T)
MRN_SCALAR(uint64_t, uint64_t, uld, UINT64_T)
MRN_SCALAR(float, float, f, FLOAT_T)
MRN_SCALAR(double, double, lf, DOUBLE_T)
#undef MRN_SCALAR

const char* DataElement::get_string() const
{
    return static_cast<const char*>(val.p);
}

void DataElement::set_string(const char* value)
{
    release();
    val.p = value;
    type_ = STRING_T;
    length_ = 1;
}

const void* DataElement::get_array(DataType* type, uint64_t* length) const
{
    if (type != NULL)
        *type = type_;
    if (length != NULL)
        *length = length_;
    return val.p;
}

const void* DataElement::get_array(DataType* type, uint32_t* length) const
{
    uint64_t all;
    const void* elements = get_array(type, &all);
    if (length != NULL)
        *length = uint32_t(all);
    return elements;
}

void DataElement::set_array(const void* elements, DataType type, uint64_t length)
{
    release();
    val.p = elements;
    type_ = type;
    length_ = length;
}

void DataElement::set_array(const void* elements, DataType type, uint32_t length)
{
    set_array(elements, type, uint64_t(length));
}

const DataElement* Packet::operator[](unsigned int index) const
{
    sapwood_error_t failure;
    if (!contents_->load(&failure) || index >= contents_->values.count) {
        error(ERR_PACKING, contents_->source, "there is no value %u", index);
        return NULL;
    }
    std::vector<DataElement>& elements = contents_->elements;
    if (elements.empty()) {
        elements.resize(contents_->values.count);
        for (size_t at = 0; at < elements.size(); at++) {
            const mrn_value& value = contents_->values.values[at];
            static_assert(sizeof elements[at].val == sizeof value.u, "the unions are alike");
            memcpy(&elements[at].val, &value.u, sizeof value.u);
            elements[at].type_ = type_of_code(value.code);
            elements[at].length_ = value.count;
        }
    }
    return &elements[index];
}

}  // namespace MRN
