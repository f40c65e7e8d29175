"""Tiny Mamba, FalconMamba and Jamba models with their logits and states, by a second implementation.

usage: make_mamba.py MODEL.gguf FOLDER

MODEL.gguf: any small model of architecture mamba2 or falcon-h1, whose tokenizer is taken.
Writes models and reference numbers (double precision, token by token, as Gu and Dao 2023
have it) into FOLDER and adds them to its cases.json.
"""
import struct, json, random, math, sys, os
b=open(sys.argv[1],'rb').read(); o=0
def rd(f):
    global o
    v=struct.unpack_from('<'+f,b,o); o+=struct.calcsize('<'+f); return v[0]
assert b[:4]==b'GGUF'; o=4; ver=rd('I'); nt=rd('Q'); nk=rd('Q')
FM={0:'B',1:'b',2:'H',3:'h',4:'I',5:'i',6:'f',7:'?',10:'Q',11:'q',12:'d'}
def skipval(t):
    global o
    if t==8: n=rd('Q'); o+=n
    elif t==9:
        et=rd('I'); n=rd('Q')
        for _ in range(n): skipval(et)
    else: o+=struct.calcsize('<'+FM[t])
kvs=[]
for _ in range(nk):
    s=o; n=rd('Q'); key=b[o:o+n].decode(); o+=n; t=rd('I'); vs=o; skipval(t); kvs.append((key,t,b[vs:o]))
def S(x): x=x.encode(); return struct.pack('<Q',len(x))+x
def make(path, arch, keys, tensors):
    out=[]
    for k,t,raw in kvs:
        if k.startswith(('mamba2.', 'falcon-h1.')): continue
        if k=='general.architecture': raw=S(arch)
        out.append(S(k)+struct.pack('<I',t)+raw)
    for k,v in keys.items():
        k=arch+'.'+k
        if isinstance(v,float): out.append(S(k)+struct.pack('<If',6,v))
        elif isinstance(v,bool): out.append(S(k)+struct.pack('<IB',7,v))
        elif isinstance(v,list): out.append(S(k)+struct.pack('<IIQ',9,5,len(v))+struct.pack('<%di'%len(v),*v))
        else: out.append(S(k)+struct.pack('<II',4,v))
    infos=[]; data=b''
    for n,(dims,vals) in tensors.items():
        infos.append(S(n)+struct.pack('<I',len(dims))+struct.pack('<%dQ'%len(dims),*dims)+struct.pack('<IQ',0,len(data)))
        data+=struct.pack('<%df'%len(vals),*vals); data+=b'\0'*(-len(data)%32)
    h=b'GGUF'+struct.pack('<IQQ',3,len(tensors),len(out))+b''.join(out)+b''.join(infos)
    h+=b'\0'*(-len(h)%32)
    open(path,'wb').write(h+data)
f32=lambda x: struct.unpack('<f',struct.pack('<f',x))[0]
def model(name, arch, seed, d, inner, N, K, rank, blocks, attn, H, Hk, ff, plain=False):
    R=random.Random(seed); T={}
    def t(n,*dims,scale=None,mean=0.0):
        c=1
        for x in dims: c*=x
        sc=scale if scale is not None else 1/math.sqrt(dims[0])
        T[n]=(list(dims),[f32(mean+sc*R.gauss(0,1)) for _ in range(c)]); return T[n][1]
    V=320
    t('token_embd.weight',d,V,scale=0.5); t('output_norm.weight',d,scale=.1,mean=1); t('output.weight',d,V)
    for i in range(blocks):
        p='blk.%d.'%i
        t(p+'attn_norm.weight',d,scale=.1,mean=1)
        if i in attn:
            hd=d//H
            t(p+'attn_q.weight',d,H*hd); t(p+'attn_k.weight',d,Hk*hd); t(p+'attn_v.weight',d,Hk*hd); t(p+'attn_output.weight',H*hd,d)
        else:
            t(p+'ssm_in.weight',d,2*inner); t(p+'ssm_conv1d.weight',K,inner); t(p+'ssm_conv1d.bias',inner,scale=.2)
            t(p+'ssm_x.weight',inner,rank+2*N); t(p+'ssm_dt.weight',rank,inner); t(p+'ssm_dt.bias',inner,scale=.5)
            T[p+'ssm_a']=([N,inner],[f32(-(0.2+2*R.random())) for _ in range(N*inner)])
            t(p+'ssm_d',inner,scale=1.0); t(p+'ssm_out.weight',inner,d)
            if arch=='jamba':
                for q,n in(('dt',rank),('b',N),('c',N)): t(p+'ssm_%s_norm.weight'%q,n,scale=.1,mean=1)
        if ff:
            t(p+'ffn_norm.weight',d,scale=.1,mean=1); t(p+'ffn_gate.weight',d,ff); t(p+'ffn_up.weight',d,ff); t(p+'ffn_down.weight',ff,d)
    keys={'context_length':512,'embedding_length':d,'block_count':blocks,'feed_forward_length':ff,'attention.head_count':H if attn else 0,
      'attention.layer_norm_rms_epsilon':1e-5,'ssm.conv_kernel':K,'ssm.inner_size':inner,'ssm.state_size':N,'ssm.time_step_rank':rank}
    if plain: keys['ssm.dt_b_c_rms']=True  # FalconMamba: norms without weights, with an epsilon of their own
    if attn: keys['attention.head_count_kv']=[Hk if i in attn else 0 for i in range(blocks)]
    eps=f32(1e-5)
    W={n:v for n,(dm,v) in T.items()}
    def mat(n,x):
        w=W[n]; c=len(x); return [sum(w[r*c+k]*x[k] for k in range(c)) for r in range(len(w)//c)]
    def rms(x,w):
        s=1/math.sqrt(sum(v*v for v in x)/len(x)+eps); return [v*s*u for v,u in zip(x,w)]
    unit=lambda x: [v/math.sqrt(sum(u*u for u in x)/len(x)+1e-6) for v in x]
    silu=lambda v:v/(1+math.exp(-v))
    def run(tokens):
        win=[[[0.0]*inner for _ in range(K-1)] for _ in range(blocks)]; st=[[[0.0]*N for _ in range(inner)] for _ in range(blocks)]
        kc=[[] for _ in range(blocks)]; vc=[[] for _ in range(blocks)]
        logits=[]; states={}
        for pos,tok in enumerate(tokens):
            x=[W['token_embd.weight'][tok*d+k] for k in range(d)]
            for i in range(blocks):
                p='blk.%d.'%i; h=rms(x,W[p+'attn_norm.weight'])
                if i in attn:
                    hd=d//H; q=mat(p+'attn_q.weight',h); kc[i].append(mat(p+'attn_k.weight',h)); vc[i].append(mat(p+'attn_v.weight',h))
                    o=[]
                    for a in range(H):
                        g=a//(H//Hk); sc=[sum(q[a*hd+e]*k_[g*hd+e] for e in range(hd))/math.sqrt(hd) for k_ in kc[i]]
                        m=max(sc); e_=[math.exp(z-m) for z in sc]; s=sum(e_)
                        o+=[sum(e_[u]*vc[i][u][g*hd+e] for u in range(len(e_)))/s for e in range(hd)]
                    y=mat(p+'attn_output.weight',o)
                else:
                    xz=mat(p+'ssm_in.weight',h); u=xz[:inner]; z=xz[inner:]
                    cw=W[p+'ssm_conv1d.weight']; rows=win[i]+[u]
                    c=[silu(W[p+'ssm_conv1d.bias'][ch]+sum(cw[ch*K+j]*rows[j][ch] for j in range(K))) for ch in range(inner)]
                    win[i]=rows[1:]
                    db=mat(p+'ssm_x.weight',c); dt=db[:rank]; B=db[rank:rank+N]; C=db[rank+N:]
                    if arch=='jamba':
                        dt=rms(dt,W[p+'ssm_dt_norm.weight']); B=rms(B,W[p+'ssm_b_norm.weight']); C=rms(C,W[p+'ssm_c_norm.weight'])
                    if plain: dt,B,C=unit(dt),unit(B),unit(C)
                    dt=mat(p+'ssm_dt.weight',dt)
                    y=[]
                    for ch in range(inner):
                        v=dt[ch]+W[p+'ssm_dt.bias'][ch]; v=max(v,0)+math.log1p(math.exp(-abs(v)))
                        s=st[i][ch]; A=W[p+'ssm_a']; acc=0
                        for n in range(N):
                            s[n]=math.exp(v*A[ch*N+n])*s[n]+v*B[n]*c[ch]; acc+=s[n]*C[n]
                        y.append((acc+W[p+'ssm_d'][ch]*c[ch])*silu(z[ch]))
                    y=mat(p+'ssm_out.weight',y)
                x=[a+e for a,e in zip(x,y)]
                if ff:
                    h=rms(x,W[p+'ffn_norm.weight']); g=mat(p+'ffn_gate.weight',h); u=mat(p+'ffn_up.weight',h)
                    x=[a+e for a,e in zip(x,mat(p+'ffn_down.weight',[silu(a)*e for a,e in zip(g,u)]))]
            logits.append(mat('output.weight',rms(x,W['output_norm.weight'])))
            states[pos+1]=[v for i in range(blocks) if i not in attn for v in [win[i][j][ch] for ch in range(inner) for j in range(K-1)]+[st[i][ch][n] for ch in range(inner) for n in range(N)]] if pos+1 in (20,40) else None
        return logits,states
    dst=sys.argv[2]+'/'; os.makedirs(dst,exist_ok=True)
    make(dst+name+'.gguf',arch,keys,T)
    wr=lambda n,v: open(dst+n,'wb').write(struct.pack('<%df'%len(v),*v))
    q=random.Random(seed+1)
    seq=[10+q.randrange(290) for _ in range(40)]; lg,stt=run(seq)
    wr(name+'.seq.truth.f32',[v for r in lg for v in r]); wr(name+'.state20.f32',stt[20]); wr(name+'.state40.f32',stt[40])
    long=[10+q.randrange(290) for _ in range(150)]; ll,_=run(long); P=[0,1,31,63,64,100,127,149]
    wr(name+'.long.truth.f32',[v for k in P for v in ll[k]])
    return {'file':name+'.gguf','sequences':[{'tokens':seq,'truth':name+'.seq.truth.f32','states':[{'after_tokens':20,'file':name+'.state20.f32'},{'after_tokens':40,'file':name+'.state40.f32'}]}],
      'long':{'tokens':long,'positions':P,'truth':name+'.long.truth.f32'}}
out={'mamba':model('mamba','mamba',1,20,36,10,4,3,2,[],0,0,0),'jamba':model('jamba','jamba',2,24,40,8,4,3,3,[1],4,2,28),
  'falcon-mamba':model('falcon-mamba','mamba',3,24,44,9,4,5,2,[],0,0,0,plain=True)}
p=sys.argv[2]+'/cases.json'
c=json.load(open(p)) if os.path.exists(p) else {'models':{}}
c['models'].update(out); json.dump(c,open(p,'w'))
